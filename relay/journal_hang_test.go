package relay

import (
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// While a write to the disk hangs, the relay is still asked whether it is ready, and serves
// what is in memory.
func TestReadsWhileTheDiskHangs(t *testing.T) {
	s, _ := diskState(t, t.TempDir(), 1<<20)
	defer s.Close()
	at := []tarn.Position{tarn.At("100")}
	if err := s.Commit(t.Context(), tarn.Batch[Object]{Whole: true, Positions: at, LastContact: time.Now()}); err != nil {
		t.Fatal(err)
	}
	s.journal.mu.Lock() // as during a write
	defer s.journal.mu.Unlock()
	done := make(chan error)
	go func() {
		if version := s.stats().version; version != 100 {
			t.Errorf("version %d", version)
		}
		_, err := s.List(t.Context(), "", apiserver.At{Match: apiserver.NotOlder, Version: 100})
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("reads wait for the disk")
	}
}
