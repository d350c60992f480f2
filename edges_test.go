package tarn_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// edges are stories of what happens when two things go wrong at once.
var edges = map[string]story{
	"a delete of which only the name can be read is a delete": {
		server: `
			list any -> 5: a@1
			watch 5 -> baddel a@6; wait 2s; close
			watch 6 -> bookmark 7; hang`,
		handler: "add a@1 initial\ndelete a@1 missed",
		bad:     "a",
	},
	"a bookmark that cannot be read hides no object": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1; badmark; end 5; badmark; error boom
			stream 5 -> badmark; end 6; hang`,
		handler: "add a@1 initial\ndelete a@1 missed",
		errors:  "boom",
		bad:     "?\n?\n?",
	},
	"a suspicion outlives a probe that gets no answer": {
		server: `
			list any -> 50: a@1
			watch 50 -> wait 2s; bookmark 30; hang
			list latest -> error busy
			watch 50 -> hang
			list latest -> 30: a@1
			list latest -> 30: a@1
			watch 30 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "busy\nthe source went back in time",
		atMost:  20 * time.Second,
	},
	"Retry-After holds after a rewind too": {
		server: `
			list any -> 50: a@1
			watch 50 -> error boom
			list 50 -> 30: a@1
			list latest -> 30: a@1
			list latest -> error busy after=60s
			list latest -> 31: a@1
			watch 31 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "boom\nthe source went back in time\nbusy",
		atLeast: 60 * time.Second,
	},
	"a state that is given up redeems nobody": {
		server: `
			list any -> 5: a@1
			watch 5 -> foreign a@6; bookmark 7; error boom
			list 7 -> 9: a@8 more=t
			list 7 continue=t -> error boom`,
		handler: "add a@1 initial",
		errors:  "boom\nboom",
		bad:     "a",
		store:   "a@1",
		then:    badCount(1),
	},
	"a bad object that was never held is forgotten when it is gone": {
		server: `
			list any -> 5: a@1 bad=x
			watch 5 -> error boom
			list 5 -> 9: a@1
			watch 9 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "boom",
		bad:     "x",
		then:    badCount(0),
	},
	"objects without a name are counted from state to state": {
		server: `
			list any -> 5: a@1 nil
			watch 5 -> error boom
			list 5 -> 6: a@1 nil
			watch 6 -> error boom
			list 6 -> 7: a@1
			watch 7 -> hang`,
		handler: "add a@1 initial\nsync a@1\nsync a@1",
		errors:  "boom\nboom",
		bad:     "?\n?",
		then:    badCount(0),
	},
	"a delete among initial events is found under the name that a transform gave": {
		opts: tarn.Options[*thing]{WatchList: true, Transform: func(o *thing) (*thing, error) {
			c := *o
			c.name = "x-" + strings.TrimPrefix(c.name, "x-")
			return &c, nil
		}},
		server:  "stream latest -> add a@1; add b@2; del a@3; end 5; hang",
		handler: "add x-b@2 initial",
		store:   "x-b@2",
	},
	"waiting to stream again is waiting": {
		opts:   tarn.Options[*thing]{WatchList: true},
		server: "stream latest -> error busy after=60s",
		errors: "busy",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			if s := r.Health().State; s != tarn.StateWaiting {
				t.Errorf("it says that it is %s", s)
			}
		},
	},
}

func badCount(want int) func(*testing.T, *tarn.Replica[*thing]) {
	return func(t *testing.T, r *tarn.Replica[*thing]) {
		if h := r.Health(); h.BadCount != want {
			t.Errorf("%d bad objects, %v; expected %d", h.BadCount, h.Bad, want)
		}
	}
}

func TestEdges(t *testing.T) {
	for name, s := range edges {
		t.Run(name, s.run)
	}
}

// lateSource answers a watch just when it is given up.
type lateSource struct{ *scripted }

func (s lateSource) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*thing], error) {
	time.Sleep(150 * time.Second)
	return s.scripted.Watch(context.WithoutCancel(ctx), q)
}

func TestWatchThatOpensAsItIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		source := lateSource{newScripted(t, "list any -> 5: a@1\nwatch 5 -> hang\nlist 5 -> 5: a@1\nwatch 5 -> hang")}
		r, err := tarn.NewReplica[*thing](source, memory.New[*thing](), tarn.Options[*thing]{OnError: func(context.Context, error) {}})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(200 * time.Second)
		cancel()
		<-done
		if source.open != 0 {
			t.Errorf("%d streams were left open", source.open)
		}
	})
}

func TestReflectorRunsOnce(t *testing.T) {
	r, err := tarn.NewReflector[*thing](newScripted(t, "list any -> hang"), memory.New[*thing](), tarn.Options[*thing]{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = r.Run(ctx)
	if err := r.Run(ctx); err == nil || !strings.Contains(err.Error(), "started before") {
		t.Errorf("the second Run returned %v", err)
	}
}

// slowStore takes its time; refusingStore takes nothing.
type (
	slowStore     struct{ *memory.Store[*thing] }
	refusingStore struct{ *memory.Store[*thing] }
)

func (s slowStore) Apply(c []tarn.Change[*thing], at tarn.Position) error {
	time.Sleep(160 * time.Second)
	return s.Store.Apply(c, at)
}

func (refusingStore) Apply([]tarn.Change[*thing], tarn.Position) error {
	return errors.New("disk full")
}

func TestSlowStoreIsNotSilence(t *testing.T) {
	seen := reflect(t, `
		list any -> 5: a@1
		watch 5 -> add b@6; add c@7; bookmark 8; wait 100s; error boom
		list 8 -> 8: a@1 b@6 c@7
		watch 8 -> hang`,
		func(*transcript) tarn.Store[*thing] { return slowStore{memory.New[*thing]()} }, tarn.Options[*thing]{})
	compare(t, "errors", "boom", seen.of("error"))
}

func TestRefusingStoreIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		source := newScripted(t, strings.Repeat("stream latest -> add a@1; end 5; hang\n", 5))
		r, err := tarn.NewReplica[*thing](source, refusingStore{memory.New[*thing]()}, tarn.Options[*thing]{
			WatchList: true, OnError: func(context.Context, error) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		<-source.over
		synctest.Wait()
		if h := r.Health(); h.Failures != 5 || h.Err == nil || h.Synced {
			t.Errorf("health after five refusals: %d failures, %v", h.Failures, h.Err)
		}
		cancel()
		<-done
	})
}
