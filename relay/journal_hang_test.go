package relay

import (
	"context"
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

// While the disk hangs, the relay also serves when the origin has gone back in time: the old past
// is removed before the new content is served.
func TestReadsWhileTheDiskHangsAndTheOriginGoesBack(t *testing.T) {
	for name, goBack := range map[string]func(s *durableState){
		"by a repair": func(s *durableState) {
			gap := tarn.Gap{From: "100", To: "90", Cause: tarn.GapRewound}
			batch := tarn.Batch[Object]{Whole: true, Positions: []tarn.Position{tarn.At("90")}, LastContact: time.Now(), Gaps: []tarn.Gap{gap}}
			if err := s.Commit(context.Background(), batch); err != nil {
				t.Error(err)
			}
		},
		"by a proof": func(s *durableState) {
			s.confirm(100, 120)
			s.disprove(110)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := diskState(t, t.TempDir(), 1<<20)
			defer s.Close()
			at := []tarn.Position{tarn.At("100")}
			if err := s.Commit(t.Context(), tarn.Batch[Object]{Whole: true, Positions: at, LastContact: time.Now()}); err != nil {
				t.Fatal(err)
			}
			rewinds := s.rewinds
			hangs := make(chan struct{})
			s.journal.background.Go(func() { <-hangs }) // as while a content is written
			back := make(chan struct{})
			go func() {
				defer close(back)
				goBack(s)
			}()
			read := make(chan struct{})
			go func() {
				defer close(read)
				for range 100 {
					s.stats()
					time.Sleep(time.Millisecond)
				}
			}()
			select {
			case <-read:
			case <-time.After(10 * time.Second):
				t.Error("reads wait for the disk")
			}
			close(hangs)
			<-back
			if <-read; s.rewinds != rewinds+1 {
				t.Errorf("%d rewinds", s.rewinds-rewinds)
			}
		})
	}
}
