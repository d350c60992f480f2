package storetest

import (
	"maps"
	"math/rand/v2"
	"strconv"

	"github.com/tarnproject/tarn"
)

// random are the checks that write at random and compare with a plain map. The
// seed is fixed: what fails once, fails again.
var random = []check{
	{"whatever is written, the content is what a map would have", func(r *rig) {
		dice := rand.New(rand.NewPCG(1, 2))
		model := state{}
		generation := 0
		key := func() tarn.Key { return tarn.Key(rune('a' + dice.IntN(8))) }
		for step := 0; step < 200 && !r.failed.Load(); step++ {
			v := tarn.Version(strconv.Itoa(step))
			if dice.IntN(6) == 0 {
				next := state{}
				for range dice.IntN(8) {
					generation++
					k := key()
					next[k] = generation
					if old, had := model[k]; had && dice.IntN(2) == 0 {
						next[k] = old
					}
				}
				r.replace(next, v)
				model = next
			} else {
				before := maps.Clone(model)
				var changes []tarn.Change[Object]
				for range dice.IntN(6) {
					generation++
					k := key()
					old, had := model[k]
					switch {
					case !had:
						changes = append(changes, addition(k, generation))
						model[k] = generation
					case dice.IntN(3) == 0:
						changes = append(changes, deletion(k, old))
						delete(model, k)
					default:
						changes = append(changes, update(k, old, generation))
						model[k] = generation
					}
				}
				r.apply(v, changes...)
				for k := range before {
					if _, stays := model[k]; !stays {
						r.expectAbsent(k)
					}
				}
			}
			r.expect(model, v)
		}
	}},
}
