package tarn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// countedLists counts the lists that are read from a server.
type countedLists struct {
	*remote
	lists *atomic.Int64
}

func (s countedLists) List(ctx context.Context, q ListQuery) (Page[*entry], error) {
	s.lists.Add(1)
	return s.remote.List(ctx, q)
}

// When the connections of 500 quiet copies break at the same time, all of them watch again. The
// next bookmark shows that the server did not go back in time, so none of them lists or probes.
func TestBrokenConnectionsOfManyCopiesCauseNoLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const copies = 500
		server, lists := newRemote("a"), &atomic.Int64{}
		ctx, cancel := cancelable(t)
		var all []*Replica[*entry]
		for range copies {
			r, err := NewReplica[*entry](countedLists{server, lists}, newPlainStore(), Options[*entry]{OnError: func(context.Context, error) {}})
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = r.Run(ctx) }()
			all = append(all, r)
		}
		synctest.Wait()
		if n := lists.Load(); n != copies {
			t.Fatalf("%d lists at the start", n)
		}
		server.fail(Because(ReasonLost, 0, errors.New("connection reset by peer")))
		time.Sleep(100 * time.Millisecond)
		server.fail(nil)
		time.Sleep(55 * time.Second)
		server.mu.Lock()
		open := server.open
		server.mu.Unlock()
		if open != copies {
			t.Errorf("%d of %d copies watch again", open, copies)
		}
		server.bookmark()
		time.Sleep(2 * time.Minute)
		if n := lists.Load() - copies; n != 0 {
			t.Errorf("%d lists after the connections broke", n)
		}
		cancel()
		for _, r := range all {
			<-r.Done()
		}
	})
}
