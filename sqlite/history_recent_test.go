package sqlite

import (
	"bytes"
	"errors"
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
		for range 1 + random.IntN([]int{4, 4, 4, 3 * statesTogether}[random.IntN(4)]) {
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
			checkSound(t, r.dir, nil)
		}
	}
}

// changedParts finds what has changed in a row from the values of two states of the same
// base.
func TestChangedParts(t *testing.T) {
	random, l := rand.New(rand.NewPCG(6, 6)), &logbook{indexed: make([]rowParts, 40)}
	for n := range l.indexed {
		if random.IntN(2) == 0 {
			l.indexed[n] = 1 << n
		}
	}
	state := func(of map[int]any) map[int]any {
		made := maps.Clone(of)
		for range random.IntN(6) {
			made[random.IntN(len(l.indexed))] = []any{nil, int64(random.IntN(3)), fmt.Sprint("text ", random.IntN(3))}[random.IntN(3)]
		}
		return made
	}
	for range 3000 {
		base := state(map[int]any{})
		before := state(base)
		after, want := state(before), rowParts(0)
		for n, part := range l.indexed {
			if before[n] != after[n] {
				want |= part
			}
		}
		all := valueList(base)
		if got := l.changedParts(differentValues(nil, all, valueList(before)), differentValues(nil, all, valueList(after))); got != want {
			t.Fatalf("from %v to %v with the base %v, %b changes, want %b", before, after, base, got, want)
		}
	}
	if l.changedParts(nil, valueList(map[int]any{len(l.indexed): "of a column that is not known"})) != allParts {
		t.Error("a column that is not known changes no part")
	}
}

// A base that was verified once is verified again if anything of it is different.
func TestVerifiedBase(t *testing.T) {
	keys, err := newFileKeys(nil, newSalt())
	must(t, err)
	c := &collection{db: &DB{keys: keys}, packer: &packer{owner: "objects", keys: keys}}
	w := &logWrite{logbook: &logbook{c: c, recent: newRecentLives()}, key: "ns/a"}
	for _, plain := range []string{"short", strings.Repeat("a longer object, ", 40)} {
		made, err := w.makeBase([]byte(plain), []byte("values"))
		must(t, err)
		verified := uint64(0)
		unpack := func(b logBase) error {
			b.stored, b.cols, b.hash = bytes.Clone(b.stored), bytes.Clone(b.cols), verified
			w.base = b
			return w.unpackBase()
		}
		for range 2 {
			if err := unpack(*made); err != nil || string(w.base.raw) != plain {
				t.Fatalf("unpacked as %.20q, %v", w.base.raw, err)
			}
			verified = w.base.hash
		}
		for what, change := range map[string]func(b *logBase){
			"its checksum":            func(b *logBase) { b.sum[3]++ },
			"the values of columns":   func(b *logBase) { b.cols = []byte("valuez") },
			"its bytes":               func(b *logBase) { b.stored = append(bytes.Clone(b.stored[:4]), b.stored[5:]...) },
			"its bytes and their CRC": func(b *logBase) { b.stored = c.packer.appendCRC("ns/a", c.packer.squeeze([]byte("another"))) },
		} {
			other := *made
			change(&other)
			if err := unpack(other); !errors.Is(err, errBadRow) {
				t.Errorf("%s changed: %v", what, err)
			}
		}
	}
}
