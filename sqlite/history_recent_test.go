package sqlite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// What is remembered of a life is what was last known of it, whatever else is remembered,
// and the room for it is bounded.
func TestRecentLives(t *testing.T) {
	const columns = 3
	l := &logbook{recent: newRecentLives(columns)}
	w := &logWrite{logbook: l}
	type life struct {
		id, base, version int64
		uid               string
		values            []uint64
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
		w.values = nil
		if want, found := known[w.key], w.recall(); found {
			hits++
			version, _ := w.version.(int64)
			if w.life != want.id || w.base.id != want.base || version != want.version || w.uid != want.uid || !slices.Equal(w.values, want.values) || w.bodyHash != l.recent.hashOf(want.body) {
				t.Fatalf("of %s it remembers life %d, base %d, version %v, uid %s, values %v, want %+v", w.key, w.life, w.base.id, w.version, w.uid, w.values, want)
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
		for range random.IntN(columns) {
			next.values = append(next.values, random.Uint64())
		}
		if random.IntN(2) == 0 {
			next.body = []byte(fmt.Sprint("difference ", i))
		}
		w.life, w.base.id, w.version, w.op, w.uid, w.values = next.id, next.base, next.version, changelog.Modified, next.uid, next.values
		w.setBody(next.body)
		w.close()
		if next.values != nil { // those that were not set are NULL
			next.values = append(next.values, make([]uint64, columns-len(next.values))...)
		}
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
