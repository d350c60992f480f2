package sqlite

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// Whatever the order in which objects come, grow, shrink and go, what none of them has
// any more is in no file once the log is empty: also where SQLite has moved rows from
// page to page, and where another tool has moved the log into the file.
func TestGoneInAnyOrder(t *testing.T) {
	for seed := uint64(1); seed <= uint64(max(1, seeds()/2)); seed++ {
		for _, foreign := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, by another tool: %v", seed, foreign), func(t *testing.T) { goneInAnyOrder(t, seed, foreign) })
		}
	}
}

func goneInAnyOrder(t *testing.T, seed uint64, foreign bool) {
	random := rand.New(rand.NewPCG(seed, 21))
	dir := directory(t)
	db := open(t, dir, Options{})
	s := openRich(t, db)
	empty := func() {
		if foreign {
			sql("PRAGMA wal_checkpoint(TRUNCATE)")(t, random, db.path())
		} else {
			must(t, db.log.empty(db.writer))
		}
	}
	now, dead := map[tarn.Key]string{}, secrets{}
	for round := range 30 {
		var changes []tarn.Change[thing]
		for range 1 + random.IntN(100) {
			c := put("ns/"+strconv.Itoa(random.IntN(300)), random.IntN(1000))
			if old, there := now[c.Key]; there {
				dead = append(dead, old)
			}
			if delete(now, c.Key); random.IntN(3) == 0 || round > 25 {
				changes = append(changes, gone(string(c.Key)))
				continue
			}
			now[c.Key] = newSecrets(random, 1)[0]
			c.Object.Pad = strings.Repeat("padding ", random.IntN(30)*random.IntN(30)) + now[c.Key]
			changes = append(changes, c)
		}
		must(t, s.Apply(changes, tarn.At(tarn.Version(strconv.Itoa(round+1)))))
		if random.IntN(2) == 0 {
			empty()
		}
	}
	empty()
	if foreign {
		// The next start clears what the tool did not, when it first empties the log.
		must(t, db.Close())
		db = open(t, dir, Options{})
		db.emptyLog()
	}
	if found, where := dead.left(t, dir); found > 0 {
		t.Errorf("%d of %d values are still there, one in %s", found, len(dead), where)
	}
	live := secrets{}
	for _, value := range now {
		live = append(live, value)
	}
	if found, _ := live.left(t, dir); found != len(live) || len(live) == 0 || len(dead) < 100 {
		t.Fatalf("of %d values %d are found, and %d are gone, so nothing is tested", len(live), found, len(dead))
	}
	wantOK(t, dir, nil)
}
