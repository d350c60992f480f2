package sqlite

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/changelog/logtest"
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

// The content is right whatever was remembered of its rows: labels that change or stay,
// objects that are deleted, created again, cannot be encoded, or are another one.
func TestContentOfRecentLives(t *testing.T) {
	r, random, want := newPastRig(t, keepAll), rand.New(rand.NewPCG(5, 5)), map[tarn.Key]string{}
	for i := range 400 {
		b := tarn.Batch[logtest.Object]{}
		for range 1 + random.IntN(4) {
			r.now, r.version = r.now.Add(time.Second), r.version+1
			v, key := tarn.Version(fmt.Sprint(r.version)), tarn.Key(fmt.Sprint("ns/", random.IntN(6)))
			o := logtest.Object{Key: key, Version: v, UID: fmt.Sprint("uid ", random.IntN(3)), Text: fmt.Sprint("text ", random.IntN(3))}
			c := tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Heard: r.now, Object: o}
			want[key] = fmt.Sprintf("%s %s %s", o.UID, o.Text, o.Text[len(o.Text)-1:])
			switch random.IntN(10) {
			case 0:
				c.Type, c.Missed = tarn.Delete, true
				delete(want, key)
			case 1:
				c.Object.Text = "" // its row cannot be made
				delete(want, key)
			}
			b.Changes, b.Positions, b.LastContact = append(b.Changes, c), []tarn.Position{tarn.At(v)}, r.now
		}
		if err := r.sink.Commit(t.Context(), b); !tarn.Taken(err) {
			t.Fatal(err)
		}
		got := map[tarn.Key]string{}
		result, err := Query(t.Context(), r.dir, "SELECT o.key, o.uid || ' ' || json_extract(o.object, '$.text') || ' ' || l.value FROM objects o JOIN objects_labels l ON l.id = o.id WHERE l.name = 'ends'", Limits{})
		must(t, err)
		for _, row := range result.Rows {
			got[tarn.Key(row[0].(string))] = row[1].(string)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("after commit %d the content is %v, want %v", i, got, want)
		}
		if i%100 == 99 {
			r.reopen(keepAll)
		}
	}
}
