package tarn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

// TestConvergence follows a collection through random writes and troubles. At the
// end the store equals the collection, and so does what a subscriber made of its
// changes. Each change was true when it came.
func TestConvergence(t *testing.T) {
	for seed := range uint64(testsize.Of(300, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { converge(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func converge(t *testing.T, random *rand.Rand) {
	ctx, stop := cancelable(t)
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	size := random.Int64N(4)
	source := newRemote(names[:random.IntN(len(names))]...)
	store := newPlainStore()
	replica, err := NewReplica[*entry](source, store, Options[*entry]{
		WatchList: random.IntN(2) == 0,
		PageSize:  func() int64 { return size },
		OnError:   func(context.Context, error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	derived := &derivedState{t: t, has: map[Key]*entry{}}
	if _, err := replica.Subscribe(derived.take, SubscribeOptions{Bound: 1 + random.IntN(20)}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- replica.Run(ctx) }()

	for range 200 {
		name := names[random.IntN(len(names))]
		switch n := random.IntN(100); {
		case n < 50:
			source.put(name, fmt.Sprint(n))
		case n < 75:
			if _, ok := source.state()[Key(name)]; ok {
				source.remove(name)
			}
		case n < 80:
			source.bookmark()
		case n < 84:
			source.compact()
		case n < 90:
			source.hangUp()
		case n < 95:
			source.fail(troubles[random.IntN(len(troubles))])
		default:
			source.fail(nil)
		}
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
	}
	source.fail(nil)
	time.Sleep(5 * time.Minute)
	synctest.Wait()

	want := source.state()
	if got := store.state(); !maps.Equal(got, want) {
		t.Errorf("the store holds\n%v, the source\n%v", got, want)
	}
	if !maps.Equal(derived.has, want) {
		t.Errorf("the subscriber made\n%v, the source has\n%v", derived.has, want)
	}
	if h := replica.Health(); h.Err != nil || h.State != StateWatching {
		t.Errorf("health: %s", h)
	}
	stop()
	<-done
}

var troubles = []error{
	errors.New("trouble"),
	Because(ReasonRefused, 0, errors.New("refused")),
	Because(ReasonBusy, 3*time.Second, errors.New("busy")),
	Because(ReasonInternal, 0, errors.New("internal")),
	Because(ReasonExpired, 0, errors.New("expired")),
	Because(ReasonTooNew, 0, errors.New("too new")),
}

// derivedState is what a subscriber knows from changes alone.
type derivedState struct {
	t   *testing.T
	has map[Key]*entry
}

func (d *derivedState) take(c Change[*entry]) {
	before, present := d.has[c.Key]
	switch c.Type {
	case Add:
		if present {
			d.t.Errorf("add of %s, which is there as %v", c.Object, before)
		}
		d.has[c.Key] = c.Object
	case Update:
		if !present || before != c.Old {
			d.t.Errorf("update of %v to %s, but %v was there", c.Old, c.Object, before)
		}
		if c.Object.version.OlderThan(before.version) {
			d.t.Errorf("update back from %s to %s", before, c.Object)
		}
		d.has[c.Key] = c.Object
	case Delete:
		if !present {
			d.t.Errorf("delete of %s, which is not there", c.Object)
		}
		delete(d.has, c.Key)
	}
}
