package relay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// journalRig writes to a state with a journal, one object each two seconds.
type journalRig struct {
	t *testing.T
	*durableState
	model
}

func newJournalRig(t *testing.T, dir string) *journalRig {
	return newBoundedRig(t, dir, journalBounds{bytes: 1 << 40, age: 24 * time.Hour})
}

func newBoundedRig(t *testing.T, dir string, bounds journalBounds) *journalRig {
	s, kept := boundedState(t, dir, 1<<20, bounds)
	r := &journalRig{t: t, durableState: s, model: model{resource: s2resource(t), version: 100}}
	if len(kept.Positions) == 0 {
		r.take(tarn.Batch[Object]{Whole: true})
	} else {
		r.model.version = versionOf(kept.Version())
	}
	return r
}

func (r *journalRig) take(b tarn.Batch[Object]) {
	r.t.Helper()
	b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(versionString(r.model.version)))}, time.Now()
	if err := r.Commit(r.t.Context(), b); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

func (r *journalRig) update(n int) {
	r.t.Helper()
	for range n {
		time.Sleep(2 * time.Second)
		r.model.version++
		o := r.object(fmt.Sprint("p", r.model.version%20), "uid", "a")
		r.take(tarn.Batch[Object]{Changes: []tarn.Change[Object]{{Type: tarn.Update, Key: tarn.Key(o.Key()), Object: o, Version: text(o)}}})
	}
}

// oldest is the oldest version that can be watched from.
func (r *journalRig) oldest() int64 {
	floor, ok := r.journal.floor()
	if !ok {
		r.t.Fatal("the journal is empty")
	}
	return floor
}

func (r *journalRig) from(version int64) error {
	w, err := r.Watch(r.t.Context(), watchAfter(version))
	if err == nil {
		w.Close()
	}
	return err
}

func watchAfter(version int64) apiserver.WatchQuery {
	return apiserver.WatchQuery{At: apiserver.At{Match: apiserver.NotOlder, Version: version}}
}

// A journal keeps to its bounds of bytes and age, and a start still finds everything that
// it needs.
func TestJournalBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newJournalRig(t, dir)
		r.bytes = 1000 // so that the past is on disk only
		r.journal.logSize, r.journal.bytes = 2<<10, 20<<10
		r.update(500)
		if total := r.journal.total(); total > 26<<10 || total < 10<<10 {
			t.Errorf("%d bytes on disk", total)
		}
		if oldest := r.oldest(); oldest < 300 || oldest > 580 || r.from(oldest) != nil {
			t.Errorf("a watch can begin at %d: %v", oldest, r.from(oldest))
		}
		if err := r.from(r.oldest() - 1); err == nil {
			t.Error("a watch begins before the journal")
		}
		r.journal.bytes, r.journal.age = 1<<30, 5*time.Minute
		r.update(500)
		if oldest := r.oldest(); oldest < 1100-220 || oldest > 1100-150 {
			t.Errorf("a watch can begin at %d", oldest)
		}
		want := contentText(r.state)
		r.Close()
		again := newJournalRig(t, dir)
		defer again.Close()
		if got := contentText(again.state); got != want || again.stats().version != 1100 {
			t.Errorf("version %d with\n%s\nwant\n%s", again.stats().version, got, want)
		}
		if err := again.from(1000); err != nil {
			t.Error(err)
		}
	})
}

// A disk that cannot be written costs the past, not the copy, and is tried again.
func TestJournalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newJournalRig(t, dir)
		r.bytes = 1000
		r.update(50)
		if err := r.from(110); err != nil {
			t.Fatal(err)
		}
		_ = r.journal.logs[0].file.Close() // the next write fails
		r.update(10)
		if _, err := r.disk(); r.stats().version != 160 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("version %d, %v", r.stats().version, err)
		}
		if err := r.from(110); err == nil {
			t.Error("a watch begins in a journal with a hole")
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "log-*")); len(left) > 0 {
			t.Errorf("%q", left)
		}
		r.update(50)
		if _, err := r.disk(); err != nil {
			t.Errorf("%v", err)
		}
		want := contentText(r.state)
		r.Close()
		again := newJournalRig(t, dir)
		defer again.Close()
		if got := contentText(again.state); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// Another cluster, and another definition, empty a directory.
func TestJournalOfAnotherOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newJournalRig(t, dir)
		r.update(5)
		for i, want := range []error{nil, nil, tarn.ErrOtherSource, nil} {
			r.serverUID = func(context.Context) (string, error) { return []string{"one", "one", "two", "two"}[i], nil }
			if err := r.confirmServer(t.Context(), r.journal); !errors.Is(err, want) {
				t.Errorf("%d: %v, want %v", i, err, want)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*-0*")); len(left) > 0 {
			t.Errorf("%q", left)
		}
		r.journal.close()
	})
}
