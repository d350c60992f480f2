package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/changelog/logtest"
)

// shortened keeps what is before a bar in a text. Of a collection "test" it knows how.
type shortened struct{ logged }

func (shortened) Rewrite(before Holding) (func(raw []byte) (logtest.Object, error), bool) {
	if before.Identity == "short" {
		return nil, true
	}
	return func(raw []byte) (logtest.Object, error) {
		o, err := logged{}.Decode(raw)
		if strings.Contains(o.Text, "unreadable") {
			return o, errors.New("it is not to be read")
		}
		o.Text, _, _ = strings.Cut(o.Text, "|")
		return o, err
	}, before.Identity == "test"
}

// shorten opens the collection with another identity.
func (r *pastRig) shorten(identity string) {
	r.Helper()
	r.sink.Close()
	sink, err := NewSink(r.db, Collection{Name: "objects", Identity: identity}, shortened{})
	must(r, err)
	r.sink = sink
}

// relist commits the whole content, as after the content was dropped.
func (r *pastRig) relist(texts map[tarn.Key]string, versions map[tarn.Key]int) {
	r.Helper()
	b := tarn.Batch[logtest.Object]{Whole: true, Positions: []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(r.version)))}, LastContact: r.now}
	for key, text := range texts {
		v := tarn.Version(fmt.Sprint(versions[key]))
		b.Changes = append(b.Changes, tarn.Change[logtest.Object]{Type: tarn.Add, Key: key, Version: v, Heard: r.now, Object: logtest.Object{Key: key, Version: v, UID: "uid of " + string(key), Text: text}})
	}
	must(r, r.sink.Commit(r.Context(), b))
}

// If fewer fields are kept, the past is rewritten without them.
func TestHistoryIsRewritten(t *testing.T) {
	r := newPastRig(t, keepAll)
	r.set("ns/a", "first text of a|hidden")
	r.set("ns/b", "text of b|hidden")
	r.set("ns/a", "second text of a|hidden!")
	r.set("ns/b", "")
	r.set("ns/b", "b again|hidden")
	const all = "SELECT key, operation, version, CAST(valid_from AS INTEGER) - 1780000000, CAST(valid_to AS INTEGER) - 1780000000, size, ends, object FROM objects_history ORDER BY seq"
	r.shorten("short")
	r.relist(map[tarn.Key]string{"ns/a": "second text of a", "ns/b": "b again"}, map[tarn.Key]int{"ns/a": 3, "ns/b": 5})
	want := `[[ns/a added 1 1 3 15 f a {"text":"first text of a"}] [ns/b added 2 2 4 9 f b {"text":"text of b"}] [ns/a modified 3 3 <nil> 16 f a {"text":"second text of a"}] ` +
		`[ns/b deleted 4 4 4 9 f b {"text":"text of b"}] [ns/b added 5 5 <nil> 7 ain {"text":"b again"}]]`
	if got := r.query(Moment{}, all); got != want {
		t.Errorf("the past is\n%s, want\n%s", got, want)
	}
	if got := r.query(Moment{Version: "3"}, "SELECT key, size FROM objects ORDER BY key"); got != "[[ns/a 16] [ns/b 9]]" {
		t.Errorf("as of version 3: %s", got)
	}
	if got := r.query(Moment{}, "SELECT cause FROM tarn_gaps"); got != "[]" {
		t.Errorf("the gaps are %s", got)
	}
	checkSound(t, r.dir, nil)
	r.set("ns/a", "third text")
	r.shorten("short again") // the same shape as before: nothing to rewrite
	checkSound(t, r.dir, nil)
	if got := r.query(Moment{}, "SELECT count(*) FROM objects_history"); got != "[[6]]" {
		t.Errorf("of a past that can stay there are %s states", got)
	}
}

// A state that cannot be rewritten is dropped, and a gap names its range.
func TestStatesThatCannotBeRewritten(t *testing.T) {
	r := newPastRig(t, keepAll)
	r.set("ns/a", "first text of a|hidden")
	r.set("ns/b", "unreadable")
	lost := r.set("ns/a", "unreadable")
	r.set("ns/a", "unreadable too")
	after := r.set("ns/a", "fifth text|hidden")
	r.set("ns/b", "")
	r.set("ns/c", "text of c|hidden")
	r.set("ns/c", "unreadable")
	r.set("ns/c", "")
	r.shorten("short")
	checkSound(t, r.dir, nil)
	r.relist(map[tarn.Key]string{"ns/a": "fifth text"}, map[tarn.Key]int{"ns/a": 5})
	if got := r.query(Moment{}, "SELECT key, operation, version, CAST(valid_to AS INTEGER) - 1780000000 FROM objects_history ORDER BY seq"); got != "[[ns/a added 1 3] [ns/a modified 5 <nil>] [ns/c added 7 8] [ns/c deleted 9 9]]" {
		t.Errorf("the past is %s", got)
	}
	if got := r.query(Moment{}, "SELECT from_version, to_version, cause FROM tarn_gaps ORDER BY since"); got != "[[1 <nil> dropped] [2 5 dropped] [7 9 dropped]]" {
		t.Errorf("the gaps are %s", got)
	}
	for _, c := range []struct {
		at   Moment
		gaps int
	}{{Moment{Time: lost}, 2}, {Moment{Time: after.Add(-time.Millisecond)}, 2}, {Moment{Version: "4"}, 2}, {Moment{Version: "1"}, 0}, {Moment{Version: "8"}, 2}} {
		result, err := c.at.Query(t.Context(), r.dir, "SELECT key FROM objects", Limits{})
		must(t, err)
		if len(result.Gaps) != c.gaps {
			t.Errorf("as of %s there are the gaps %v", c.at, result.Gaps)
		}
	}
	checkSound(t, r.dir, nil)
}

// A codec that does not know how to rewrite leaves the past to be dropped.
func TestHistoryThatCannotBeRewritten(t *testing.T) {
	r := newPastRig(t, keepAll)
	r.set("ns/a", "text|hidden")
	r.shorten("third")
	r.sink.Close()
	r.shorten("fourth") // nothing is known about "third"
	r.relist(nil, nil)
	if got := r.query(Moment{}, "SELECT cause FROM tarn_gaps"); got != "[[dropped]]" {
		t.Errorf("the gaps are %s", got)
	}
	checkSound(t, r.dir, nil)
}

// If a process was killed while it rewrote a log, the next one continues. With other settings
// it drops what it cannot tell apart.
func TestRewritingIsContinued(t *testing.T) {
	for identity, want := range map[string]string{"short": "[[3000 0]]", "another": "[]"} {
		r := newPastRig(t, keepAll)
		r.set("ns/first", "a log begins with a whole state")
		b := tarn.Batch[logtest.Object]{LastContact: r.now}
		for i := range 2999 {
			r.version++
			key, v := tarn.Key(fmt.Sprint("ns/", i%1000)), tarn.Version(fmt.Sprint(r.version))
			b.Changes = append(b.Changes, tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Heard: r.now, Object: logtest.Object{Key: key, Version: v, UID: "u", Text: fmt.Sprint("text ", i, "|hidden")}})
		}
		b.Positions = []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(r.version)))}
		must(t, r.sink.Commit(t.Context(), b))
		r.sink.Close()
		// The same steps as those of NewSink, without the end.
		s := &Store[logtest.Object]{codec: shortened{}, table: shortened{}, unwritten: map[tarn.Key]struct{}{}}
		s.c = &collection{Collection: Collection{Name: "objects", Identity: "short"}, db: r.db, packer: &packer{owner: "objects", keys: r.db.keys}, history: keepAll}
		s.c.table = prepareTable(shortened{}.Table())
		s.c.identity = "short\nlogged\n" + strings.Join(shortened{}.Table().ddl("objects", 0), ";\n")
		s.c.seed, s.c.rewriter = s.seed, s.rewriteFrom
		must(t, r.db.add(s.c))
		n, more, err := s.c.rewriteSome()
		if n < rewrittenAtOnce || !more || err != nil {
			t.Fatalf("the first transaction rewrote %d states, and more are left: %v (%v)", n, more, err)
		}
		checkSound(t, r.dir, nil)
		must(t, r.db.Close())
		r.db = open(t, r.dir, Options{History: keepAll})
		r.sink, err = NewSink(r.db, Collection{Name: "objects", Identity: identity}, shortened{})
		must(t, err)
		checkSound(t, r.dir, nil)
		left, tables := 0, r.query(Moment{}, "SELECT count(*), sum(name LIKE 'tarn_rewrite%') FROM sqlite_schema")
		if !strings.HasSuffix(tables, " 0]]") {
			t.Errorf("the note of the rewriting stays: %s", tables)
		}
		bounds, err := r.sink.Log().Bounds(t.Context())
		must(t, err)
		for e, err := range r.sink.Log().After(t.Context(), 0) {
			if errors.Is(err, changelog.ErrExpired) {
				break
			}
			must(t, err)
			if strings.Contains(string(e.Object), "hidden") {
				left++
			}
		}
		if got := fmt.Sprintf("[[%d %d]]", bounds.States, left); got != want && want != "[]" || want == "[]" && bounds.States != 0 {
			t.Errorf("as %s: states and those with hidden text are %s, want %s", identity, got, want)
		}
	}
}

// What is left out of the past is in no file any more.
func TestRewrittenMeansGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPastRig(t, keepAll)
		random := rand.New(rand.NewPCG(3, 4))
		old := newSecrets(random, 400)
		for i, secret := range old {
			key := tarn.Key(fmt.Sprint("ns/", i%40))
			r.set(key, strings.Repeat("padding ", i%40*10)+"|"+secret)
			if i%7 == 6 {
				r.set(key, "")
			}
		}
		if n, _ := old.left(t, r.dir); n < 300 { // differences hide some
			t.Fatalf("only %d secrets are found, so nothing is tested", n)
		}
		r.shorten("short")
		time.Sleep(2 * emptyAfter)
		synctest.Wait()
		if n, where := old.left(t, r.dir); n > 0 {
			t.Errorf("%d secrets are still there, one in %s", n, where)
		}
		bounds, err := r.sink.Log().Bounds(t.Context())
		must(t, err)
		if bounds.States < 400 {
			t.Errorf("%d states are left", bounds.States)
		}
		checkSound(t, r.dir, nil)
		r.sink.Close()
		must(t, r.db.Close())
	})
}

func TestRewritingAnEncryptedHistory(t *testing.T) {
	dir, key := directory(t), make([]byte, 32)
	r := &pastRig{T: t, dir: dir, now: time.UnixMilli(1_780_000_000_000)}
	r.db = open(t, dir, Options{History: keepAll, Key: key})
	var err error
	r.sink, err = NewSink(r.db, Collection{Name: "objects", Identity: "test"}, logged{})
	must(t, err)
	for i := range 10 {
		r.set("ns/a", fmt.Sprint("text ", i, "|hidden"))
	}
	r.shorten("short")
	n := 0
	for e, err := range r.sink.History(t.Context(), "ns/a") {
		must(t, err)
		if want := fmt.Sprint("text ", n); e.Object.Text != want {
			t.Errorf("the text is %q, want %q", e.Object.Text, want)
		}
		n++
	}
	if n != 10 {
		t.Errorf("%d states are left", n)
	}
	checkSound(t, dir, key)
}
