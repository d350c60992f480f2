package synctrack

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	upstream "k8s.io/client-go/tools/cache/synctrack"
	"pgregory.net/rapid"
)

type asyncTracker interface {
	Start(string)
	Finished(string)
	UpstreamHasSynced()
	HasSynced() bool
	Done() <-chan struct{}
	Name() string
}

type singleFileTracker interface {
	Start()
	Finished()
	UpstreamHasSynced()
	HasSynced() bool
	Done() <-chan struct{}
	Name() string
}

// single lets a counting tracker be called by key.
type single struct{ singleFileTracker }

func (s single) Start(string)    { s.singleFileTracker.Start() }
func (s single) Finished(string) { s.singleFileTracker.Finished() }

func state(t asyncTracker) string {
	done := false
	select {
	case <-t.Done():
		done = true
	default:
	}
	return fmt.Sprint(t.Name(), t.HasSynced(), done)
}

func TestTrackersLikeClientGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ours, theirs asyncTracker = NewAsyncTracker[string]("n"), upstream.NewAsyncTracker[string]("n")
		counting := rapid.Bool().Draw(t, "counting")
		if counting {
			ours, theirs = single{NewSingleFileTracker("n")}, single{upstream.NewSingleFileTracker("n")}
		}
		key := rapid.SampledFrom([]string{"a", "b", "c"})
		started := 0
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				k := key.Draw(t, "key")
				ours.Start(k)
				theirs.Start(k)
				started++
			},
			"finish": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if started--; counting && started < 0 {
					started = 0
					return // panics, see below
				}
				ours.Finished(k)
				theirs.Finished(k)
			},
			"upstream": func(*rapid.T) {
				ours.UpstreamHasSynced()
				theirs.UpstreamHasSynced()
			},
			"": func(t *rapid.T) {
				if got, want := state(ours), state(theirs); got != want {
					t.Fatalf("got %s, client-go's is %s", got, want)
				}
			},
		})
	})
}

func TestFinishedTooOften(t *testing.T) {
	tracker := NewSingleFileTracker("n")
	func() {
		defer func() {
			if p := fmt.Sprint(recover()); !strings.Contains(p, "negative counter") {
				t.Errorf("recovered %s", p)
			}
		}()
		tracker.Finished()
	}()
	tracker.UpstreamHasSynced() // the lock is free
	if !tracker.HasSynced() {
		t.Error("not synced")
	}
}

func TestTrackersFromManyGoroutines(t *testing.T) {
	async, counting := NewAsyncTracker[int](""), NewSingleFileTracker("")
	var work sync.WaitGroup
	for i := range 100 {
		async.Start(i)
		counting.Start()
		work.Go(func() {
			async.Finished(i)
			counting.Finished()
		})
	}
	work.Go(async.UpstreamHasSynced)
	work.Go(counting.UpstreamHasSynced)
	<-async.Done()
	<-counting.Done()
	work.Wait()
}
