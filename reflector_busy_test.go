package tarn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// busySource has a stream that always has an event, and never looks at its context.
type busySource struct{ *asked }

func (s busySource) Watch(ctx context.Context, q WatchQuery) (Stream[*entry], error) {
	stream, err := s.asked.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &busyStream{stream}, nil
}

type busyStream struct{ Stream[*entry] }

func (s *busyStream) Next(_ context.Context, buf []Event[*entry]) (int, error) {
	time.Sleep(time.Millisecond)
	buf[0] = Event[*entry]{Type: EventModified, Object: &entry{name: "a", version: "1"}}
	return 1, nil
}

// A recheck ends a pass whose stream never waits.
func TestRecheckOfABusyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := busySource{&asked{remote: newRemote("a")}}
		r, err := NewReplica[*entry](source, newPlainStore(), Options[*entry]{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := cancelable(t)
		go func() { _ = r.Run(ctx) }()
		time.Sleep(10 * time.Second)
		r.Recheck("asked")
		time.Sleep(10 * time.Second)
		if n := r.Health().Lists["asked"]; n != 1 {
			t.Errorf("%d reads because of the recheck", n)
		}
		cancel()
		<-r.Done()
	})
}

// refusesResync is a store whose resync fails.
type refusesResync struct{ *plainStore }

func (refusesResync) Resync() error { return errors.New("no resync") }

// A resync that fails ends a pass whose stream never waits, too.
func TestFailedResyncOfABusyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := busySource{&asked{remote: newRemote("a")}}
		r, err := NewReflector[*entry](source, refusesResync{newPlainStore()}, Options[*entry]{
			ResyncPeriod: 10 * time.Second, OnError: func(context.Context, error) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := cancelable(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = r.Run(ctx)
		}()
		time.Sleep(15 * time.Second)
		if lists := r.Health().Lists; lists[causeStart] != 1 || len(lists) != 2 {
			t.Errorf("the state was read because of %v", lists)
		}
		cancel()
		<-done
	})
}
