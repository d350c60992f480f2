package tarn

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"
)

// show writes changes as text, with the old state where there is one:
//
//	+a1  add         *a1  add, initial      ~a1>a2  update
//	=a1  sync        -a1>a2  delete, of which a2 is the final state
//	?a1>a1  a delete that a relist found    |  the first state is complete
func show(changes []Change[*entry]) string {
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = showOne(c)
	}
	return strings.Join(words, " ")
}

func showOne(c Change[*entry]) string {
	if c.Type == marked {
		return "|"
	}
	if Key(c.Object.name) != c.Key {
		return fmt.Sprintf("(%v under %q)", c.Object, c.Key)
	}
	switch {
	case c.Type == Add && c.Initial:
		return fmt.Sprintf("*%v", c.Object)
	case c.Type == Add:
		return fmt.Sprintf("+%v", c.Object)
	case c.Type == Update:
		return fmt.Sprintf("~%v>%v", c.Old, c.Object)
	case c.Type == Delete && c.Missed:
		return fmt.Sprintf("?%v>%v", c.Old, c.Object)
	case c.Type == Delete:
		return fmt.Sprintf("-%v>%v", c.Old, c.Object)
	default:
		return fmt.Sprintf("=%v", c.Object)
	}
}

// cancelable is a context that ends with the test or before.
func cancelable(t *testing.T) (context.Context, func()) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// copying is a replica of a remote in a plainStore, for the length of a test.
type copying struct {
	*Replica[*entry]
	t      *testing.T
	remote *remote
	store  *plainStore
	ctx    context.Context
	cancel func()
	ended  chan error
}

func newCopy(t *testing.T, r *remote, opts Options[*entry]) *copying {
	t.Helper()
	return newCopyIn(t, r, func(s *plainStore) ReadStore[*entry] { return s }, opts)
}

// newCopyIn is newCopy with a store around the plain one.
func newCopyIn(t *testing.T, r *remote, wrap func(*plainStore) ReadStore[*entry], opts Options[*entry]) *copying {
	t.Helper()
	c := &copying{t: t, remote: r, store: newPlainStore(), ended: make(chan error, 1)}
	if opts.Name == "" {
		opts.Name = "entries"
	}
	if opts.OnError == nil {
		opts.OnError = func(context.Context, error) {}
	}
	var err error
	if c.Replica, err = NewReplica(r, wrap(c.store), opts); err != nil {
		t.Fatal(err)
	}
	c.ctx, c.cancel = cancelable(t)
	return c
}

// start runs the replica. It is stopped at the end of the test, or by stop.
func (c *copying) start() *copying {
	go func() { c.ended <- c.Run(c.ctx) }()
	c.t.Cleanup(func() { _ = c.stop() })
	return c
}

// stop ends the replica and returns what Run returned.
func (c *copying) stop() error {
	c.cancel()
	err := <-c.ended
	c.ended <- err
	return err
}

// subscribe adds an audience. Once the replica runs, a pause must come with it.
func (c *copying) subscribe(opts SubscribeOptions, pause ...func(Change[*entry])) *audience {
	c.t.Helper()
	a := &audience{t: c.t, has: map[Key]*entry{}, seated: make(chan struct{})}
	if len(pause) > 0 {
		a.pause = pause[0]
	}
	var err error
	if a.Subscription, err = c.Subscribe(a.take, opts); err != nil {
		c.t.Fatal(err)
	}
	close(a.seated)
	return a
}

// audience is a subscriber that holds everyone to the contract: it reports an
// add of what it has, anything else of what it has not, and an old state that is
// not the one it was last given.
type audience struct {
	*Subscription[*entry]
	t      *testing.T
	seated chan struct{}
	// pause is called before each change is taken, if set.
	pause func(Change[*entry])

	mu     sync.Mutex
	has    map[Key]*entry
	heard  []Change[*entry]
	synced bool
}

func (a *audience) take(c Change[*entry]) {
	<-a.seated
	if a.pause != nil {
		a.pause(c)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteSynced()
	a.heard = append(a.heard, c)
	had, present := a.has[c.Key]
	switch {
	case c.Type == Add && present:
		a.t.Errorf("%s: the subscriber has %v", showOne(c), had)
	case c.Type != Add && c.Old != had:
		a.t.Errorf("%s: the subscriber was last given %v", showOne(c), had)
	}
	if c.Type == Delete {
		delete(a.has, c.Key)
	} else {
		a.has[c.Key] = c.Object
	}
}

// noteSynced puts a mark where Synced was found closed.
func (a *audience) noteSynced() {
	if !a.synced && isClosed(a.Synced()) {
		a.synced = true
		a.heard = append(a.heard, Change[*entry]{Type: marked})
	}
}

// told is all that was received, as text.
func (a *audience) told() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteSynced()
	return show(a.heard)
}

// state is what the subscriber has made of it.
func (a *audience) state() map[Key]*entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.has)
}

// isClosed says whether a channel has been closed.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// wantHeard compares what a subscriber received.
func (a *audience) wantHeard(want string) {
	a.t.Helper()
	if got := a.told(); got != want {
		a.t.Errorf("the subscriber was told\n  %s\nwant\n  %s", got, want)
	}
}

// within is a context that ends after d, or with the test.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// asked is a source that records what it was asked, in order.
type asked struct {
	*remote
	mu        sync.Mutex
	questions []question
}

// question is what a list and a watch are asked alike; whole says that it was for a
// whole state.
type question struct {
	whole, afresh bool
	held          Holder
}

func (a *asked) note(q question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.questions = append(a.questions, q)
}

func (a *asked) List(ctx context.Context, q ListQuery) (Page[*entry], error) {
	a.note(question{true, q.Afresh, q.Held})
	return a.remote.List(ctx, q)
}

func (a *asked) Watch(ctx context.Context, q WatchQuery) (Stream[*entry], error) {
	a.note(question{q.Initial, q.Afresh, q.Held})
	return a.remote.Watch(ctx, q)
}
