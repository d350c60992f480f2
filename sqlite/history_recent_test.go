package sqlite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// What is remembered of a life is what was last known of it, whatever else is remembered,
// and the room for it is bounded.
func TestRecentLives(t *testing.T) {
	l := &logbook{recent: newRecentLives()}
	w := &logWrite{logbook: l}
	type life struct {
		id, base, version int64
		uid               string
		body              []byte
	}
	known, random := map[tarn.Key]life{}, rand.New(rand.NewPCG(3, 3))
	keys, hits := mostRecent+mostRecent/4, 0
	for i := range 4 * keys {
		n := random.IntN(keys)
		w.key = tarn.Key(fmt.Sprint("ns/", n))
		if n%50 == 0 {
			w.key += tarn.Key(strings.Repeat("x", mostNames))
		}
		if want, found := known[w.key], w.recall(); found {
			hits++
			version, _ := w.version.(int64)
			if w.life != want.id || w.base.id != want.base || version != want.version || w.uid != want.uid || w.bodyHash != l.recent.hashOf(want.body) {
				t.Fatalf("of %s it remembers life %d, base %d, version %v, uid %s, want %+v", w.key, w.life, w.base.id, w.version, w.uid, want)
			}
			if n%50 == 0 {
				t.Fatalf("%s has no room", w.key)
			}
		}
		if random.IntN(10) == 0 {
			w.life = 0
			w.close()
			delete(known, w.key)
			continue
		}
		next := life{id: int64(i + 1), base: random.Int64(), version: random.Int64(), uid: fmt.Sprint("uid ", i)}
		if random.IntN(2) == 0 {
			next.body = []byte(fmt.Sprint("difference ", i))
		}
		w.life, w.base.id, w.version, w.op, w.uid = next.id, next.base, next.version, changelog.Modified, next.uid
		w.setLast(next.body, nil)
		w.close()
		known[w.key] = next
	}
	if len(l.recent.lives) > mostRecent || len(l.recent.at) > mostRecent || hits < keys/2 {
		t.Errorf("%d lives are remembered in %d places, and were found %d times", len(l.recent.at), len(l.recent.lives), hits)
	}
	l.recent.forgetAll()
	if w.recall() {
		t.Error("it remembers what was to be forgotten")
	}
}
