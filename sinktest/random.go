package sinktest

import (
	"fmt"
	"math/rand/v2"

	"github.com/tarnproject/tarn"
)

// random is the check that makes up what happens.
var random = []check{
	{"any commits leave what they should", func(r *rig) {
		chance := rand.New(rand.NewPCG(1, 2))
		var want state
		for n := range 120 {
			b := randomBatch(chance, n, want)
			r.commit(b)
			if chance.IntN(8) == 0 {
				r.commit(b)
			}
			want = want.after(b)
			if chance.IntN(3) > 0 {
				continue
			}
			if problems := r.differs(want); len(problems) > 0 {
				r.T.Errorf("after batch %d: %s", n+1, problems[0])
				return
			}
		}
	}},
}

func randomBatch(chance *rand.Rand, n int, from state) tarn.Batch[Object] {
	b := to(tarn.Version(fmt.Sprint(n + 1)))
	b.Whole = n == 0 || chance.IntN(20) == 0
	for range chance.IntN(6) {
		key := tarn.Key(fmt.Sprintf("ns/%d", chance.IntN(10)))
		switch chance.IntN(4) {
		case 0:
			b.Changes = append(b.Changes, deleted(key, b.Positions[0].Version))
		case 1:
			c := change(tarn.Update, key, from.objects[key].Version, fmt.Sprint("rewound ", n))
			c.Rewound = true
			b.Changes = append(b.Changes, c)
		default:
			b.Changes = append(b.Changes, change(tarn.Update, key, b.Positions[0].Version, fmt.Sprint(n)))
		}
	}
	return b
}
