package relay

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// A watch from a version on disk is possible again as soon as the disk can be read again.
func TestBlockThatCouldNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := diskState(t, t.TempDir(), 1)
		defer s.Close()
		m := &model{resource: s2resource(t), version: 100}
		commit := func(b tarn.Batch[Object]) {
			b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(versionString(m.version)))}, time.Now()
			if err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		commit(tarn.Batch[Object]{Whole: true})
		for i := range 20 {
			time.Sleep(2 * journalDelay)
			m.version++
			o := m.object(fmt.Sprint("p", i), "uid", "a")
			commit(tarn.Batch[Object]{Changes: []tarn.Change[Object]{{Type: tarn.Update, Key: tarn.Key(o.Key()), Object: o, Version: text(o)}}})
		}
		watch := func() error {
			w, err := s.Watch(t.Context(), apiserver.WatchQuery{At: apiserver.At{Match: apiserver.NotOlder, Version: 105}})
			if err == nil {
				w.Close()
			}
			return err
		}
		empty, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer empty.Close()
		l := s.journal.logs[0]
		whole := l.file
		l.file = empty
		if watch() == nil {
			t.Error("a watch began at a version that cannot be read")
		}
		l.file = whole
		if err := watch(); err != nil {
			t.Error(err)
		}
	})
}

// A block that could not be read does not count among those that are held.
func TestErrorsAreNotRecent(t *testing.T) {
	var r recentChunks
	bad := errors.New("bad")
	for i := range 3 * mostRecent {
		if _, err := r.get(i%3, func() ([]*apiserver.Event, error) { return nil, bad }); err != bad {
			t.Fatal(err)
		}
	}
	if len(r.by)+len(r.order) != 0 {
		t.Errorf("%d blocks are held, %d in order", len(r.by), len(r.order))
	}
}
