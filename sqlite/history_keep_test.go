package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/changelog/logtest"
)

// A history that is switched on begins with what the collection holds; one that is
// switched off is removed.
func TestHistorySwitchedOnAndOff(t *testing.T) {
	r := newPastRig(t, History{})
	r.set("ns/a", "first text of a")
	r.set("ns/b", "text of b")
	on := r.now
	if got := r.query(Moment{Time: on}, "SELECT key FROM objects"); !strings.Contains(got, changelog.ErrNoLog.Error()) {
		t.Errorf("as of a moment without a history: %s", got)
	}
	r.reopen(keepAll)
	r.set("ns/a", "second text of a")
	if got := r.query(Moment{Time: on}, "SELECT key, size, resource_version FROM objects ORDER BY key"); got != "[[ns/a 15 1] [ns/b 9 2]]" {
		t.Errorf("as of the time before: %s", got)
	}
	if got := r.query(Moment{Time: on.Add(-time.Millisecond)}, "SELECT key FROM objects"); !strings.Contains(got, changelog.ErrExpired.Error()) {
		t.Errorf("as of a time before the history: %s", got)
	}
	r.reopen(History{})
	if got := r.query(Moment{Time: r.now}, "SELECT key FROM objects"); !strings.Contains(got, changelog.ErrNoLog.Error()) {
		t.Errorf("as of a moment after the history was switched off: %s", got)
	}
	if n, err := r.sink.Log().Bounds(t.Context()); !errors.Is(err, changelog.ErrNoLog) {
		t.Errorf("a log that is switched off has %v (%v)", n, err)
	}
}

// Bad settings are refused before a directory is touched.
func TestBadHistories(t *testing.T) {
	for _, h := range []History{{Age: -1}, {Bytes: -1}, {Bytes: 100}, {Thin: Thinning{After: time.Hour, Every: time.Minute}}, {Age: time.Hour, Thin: Thinning{After: time.Hour}}, {Age: time.Hour, Thin: Thinning{After: time.Minute, Every: time.Microsecond}}} {
		dir := directory(t)
		if db, err := Open(dir, Options{History: h}); err == nil {
			db.Close()
			t.Errorf("%+v was taken", h)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%+v: the directory was made", h)
		}
	}
}

// Content of another identity is dropped with its history, and a gap says so. If only the
// columns differ, the history stays.
func TestHistoryOfAnotherIdentity(t *testing.T) {
	r := newPastRig(t, keepAll)
	r.set("ns/a", "first text of a")
	before := r.now
	r.sink.Close()
	more, err := NewSink(r.db, Collection{Name: "objects", Identity: "test"}, widerLogged{})
	must(t, err)
	r.sink = more
	whole := tarn.Batch[logtest.Object]{Whole: true, Positions: []tarn.Position{tarn.At("9")}, LastContact: r.now.Add(time.Second)}
	must(t, r.sink.Commit(t.Context(), whole))
	if got := r.query(Moment{Time: before}, "SELECT key, size, double FROM objects"); got != "[[ns/a 15 <nil>]]" {
		t.Errorf("with other columns the past is %s", got)
	}
	if got := r.query(Moment{}, "SELECT collection, from_version, to_version, cause FROM tarn_gaps"); got != "[[objects 1 9 reconciled]]" {
		t.Errorf("the gaps are %s", got)
	}
	checkSound(t, r.dir, nil)
	r.sink.Close()
	other, err := NewSink(r.db, Collection{Name: "objects", Identity: "another"}, logged{})
	must(t, err)
	r.sink = other
	must(t, r.sink.Commit(t.Context(), whole))
	if got := r.query(Moment{}, "SELECT cause FROM tarn_gaps"); got != "[[dropped]]" {
		t.Errorf("the gaps of another identity are %s", got)
	}
	if got := r.query(Moment{Time: before}, "SELECT key FROM objects"); !strings.Contains(got, changelog.ErrExpired.Error()) {
		t.Errorf("the past of another identity is %s", got)
	}
	checkSound(t, r.dir, nil)
}

// widerLogged has one more column.
type widerLogged struct{ logged }

func (widerLogged) Table() Table {
	t := logged{}.Table()
	t.Columns = append([]Column{{Name: "double", Type: "INTEGER"}}, t.Columns...)
	return t
}

func (widerLogged) Row(o logtest.Object, raw []byte) (Row, error) {
	row, err := logged{}.Row(o, raw)
	row.Values = append([]any{2 * len(o.Text)}, row.Values...)
	return row, err
}

// While an object is bad, every batch has a gap: they are one row.
func TestGapsOfBadObjects(t *testing.T) {
	r := newPastRig(t, keepAll)
	r.set("ns/a", "text")
	begin := r.now
	for i := range 20 {
		r.now, r.version = r.now.Add(time.Second), r.version+1
		v := tarn.Version(fmt.Sprint(r.version))
		b := tarn.Batch[logtest.Object]{Positions: []tarn.Position{tarn.At(v)}, LastContact: r.now, Gaps: []tarn.Gap{{From: tarn.Version(fmt.Sprint(r.version - 1)), To: v, Cause: tarn.GapBad}}}
		if i == 10 { // another one
			b.Gaps[0].Section = "other"
		}
		b.Changes = []tarn.Change[logtest.Object]{{Type: tarn.Update, Key: "ns/a", Version: v, Heard: r.now, Object: logtest.Object{Key: "ns/a", Version: v, UID: "uid of ns/a", Text: "text " + string(v)}}}
		must(t, r.sink.Commit(t.Context(), b))
	}
	if got := r.query(Moment{}, fmt.Sprintf("SELECT section, from_version, to_version, cause, since - %d, until - %d FROM tarn_gaps ORDER BY since", begin.Unix(), begin.Unix())); got != "[[ 1 11 bad objects 0 10] [other 11 12 bad objects 10 11] [ 12 21 bad objects 11 20]]" {
		t.Errorf("the gaps are %s", got)
	}
	place, err := r.sink.Log().AtVersion(t.Context(), "5")
	if err != nil || len(place.Gaps) != 1 {
		t.Errorf("version 5 is at %v (%v)", place, err)
	}
	checkSound(t, r.dir, nil)
}

// TestHistoryKill kills a process that writes, at random moments: content and log agree.
func TestHistoryKill(t *testing.T) {
	if dir := os.Getenv(historyCrashEnvironment); dir != "" {
		writeHistoryForEver(t, dir)
	}
	dir, states := directory(t), int64(0)
	for range crashes() {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHistoryKill$")
		cmd.Env = append(os.Environ(), historyCrashEnvironment+"="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_, err = out.Read(make([]byte, 1))
		must(t, err)
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond) // real time: another process runs
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		checkSound(t, dir, nil)
		view, err := OpenReader(dir, nil)
		must(t, err)
		content := map[tarn.Key]string{}
		_, err = view.Walk(t.Context(), "objects", func(e Entry) error {
			raw, err := e.Bytes()
			content[e.Key] = string(raw)
			return err
		})
		must(t, err)
		bounds, err := view.Log("objects").Bounds(t.Context())
		must(t, err)
		for e, err := range view.Log("objects").AsOf(t.Context(), changelog.Place{Seq: bounds.Last}) {
			must(t, err)
			if content[e.Key] != string(e.Object) {
				t.Errorf("%s is %s in the content, and %s in the log", e.Key, content[e.Key], e.Object)
			}
			delete(content, e.Key)
		}
		if len(content) > 0 || bounds.States < states {
			t.Errorf("the log lacks %v, and has %d states after %d", content, bounds.States, states)
		}
		states = bounds.States
		must(t, view.Close())
	}
	if states == 0 {
		t.Error("no child wrote anything")
	}
	t.Logf("%d crashes, %d states", crashes(), states)
}

func writeHistoryForEver(t *testing.T, dir string) {
	db, err := Open(dir, Options{Logger: quiet, History: keepAll})
	must(t, err)
	must(t, db.writer.Exec("PRAGMA wal_autocheckpoint=50"))
	s, err := NewSink(db, Collection{Name: "objects", Identity: "test"}, logged{})
	must(t, err)
	kept, err := s.Open(context.Background(), func() error { return nil })
	must(t, err)
	version, whole := 0, true
	if len(kept.Positions) > 0 {
		_, err := fmt.Sscan(string(kept.Positions[0].Version), &version)
		must(t, err)
		whole = false
	}
	fmt.Print("!")
	for {
		b := tarn.Batch[logtest.Object]{Whole: whole, LastContact: time.Now()}
		whole = false
		for range rand.IntN(20) {
			version++
			key, v := tarn.Key(fmt.Sprint("ns/", rand.IntN(15))), tarn.Version(fmt.Sprint(version))
			c := tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Heard: time.Now(), Object: logtest.Object{Key: key, Version: v, UID: fmt.Sprint(version / 300), Text: strings.Repeat(fmt.Sprint("text ", version), rand.IntN(30)+1)}}
			if rand.IntN(6) == 0 {
				c.Type = tarn.Delete
			}
			b.Changes = append(b.Changes, c)
		}
		b.Positions = []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(version)))}
		must(t, s.Commit(context.Background(), b))
	}
}
