package tarn

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// hub stands between a reflector and a store: what is written to the store is
// handed to the subscribers, in the same order.
//
// mu makes writing and joining exclude each other, so that one who joins sees
// each object either in the state it starts with or as a change after it, never
// both and never neither. Readers of the store do not pass here.
type hub[T any] struct {
	store  ReadStore[T]
	clock  Clock
	logger *slog.Logger

	mu        sync.Mutex
	followers []*follower[T]
	synced    bool
	// waiting are the subscriptions made before start; ctx is theirs after it.
	waiting []*Subscription[T]
	ctx     context.Context
	closed  bool
	running sync.WaitGroup
	joined  int
	gate    gate
}

// follower is one backlog with whether it wants Sync changes.
type follower[T any] struct {
	backlog *backlog[T]
	syncs   func() bool
}

const defaultBound = 10_000

// apply writes to the store and publishes what was written.
func (h *hub[T]) apply(changes []Change[T], v Version) error {
	news, again := split(changes)
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.store.Apply(news, v)
	if _, some := err.(ObjectErrors); err != nil && !some {
		return err
	}
	h.publish(news, again)
	h.gate.reach(h.store.Version())
	return err
}

// split separates what changes the store from what only offers it again.
func split[T any](changes []Change[T]) (news, again []Change[T]) {
	for i := range changes {
		if changes[i].Type == Sync {
			return changes[:i], changes[i:]
		}
	}
	return changes, nil
}

func (h *hub[T]) publish(news, again []Change[T]) {
	if len(h.followers) == 0 || len(news)+len(again) == 0 {
		return
	}
	now := h.clock.Now()
	// The writer uses its slice again; the followers share one copy.
	news = append([]Change[T](nil), news...)
	for _, f := range h.followers {
		f.backlog.add(now, news)
		if len(again) > 0 && f.syncs() {
			f.backlog.add(now, again)
		}
	}
}

// markSynced tells everyone that the first whole state has been written.
func (h *hub[T]) markSynced() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.synced {
		return
	}
	h.synced = true
	now := h.clock.Now()
	for _, f := range h.followers {
		f.backlog.add(now, []Change[T]{{Type: marked}})
	}
}

// wantsSync says whether anyone would listen to Sync changes.
func (h *hub[T]) wantsSync() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.followers {
		if f.syncs() {
			return true
		}
	}
	return false
}

// resync offers everything again.
func (h *hub[T]) resync() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := make([]Change[T], 0, h.store.Len())
	for key, object := range h.store.All() {
		again = append(again, Change[T]{Type: Sync, Key: key, Old: object, Object: object})
	}
	h.publish(nil, again)
	return nil
}

// join adds a follower, which begins with what is there.
func (h *hub[T]) join(bound int, syncs func() bool) (*follower[T], error) {
	f := &follower[T]{syncs: syncs, backlog: newBacklog[T](func() int {
		if bound > 0 {
			return bound
		}
		return max(defaultBound, h.store.Len())
	})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fmt.Errorf("the subscriber was not added: the replica has %w", ErrStopped)
	}
	now := h.clock.Now()
	initial := make([]Change[T], 0, h.store.Len())
	for key, object := range h.store.All() {
		initial = append(initial, Change[T]{Type: Add, Initial: true, Key: key, Object: object})
	}
	f.backlog.add(now, initial)
	if h.synced {
		f.backlog.add(now, []Change[T]{{Type: marked}})
	}
	h.followers = append(h.followers, f)
	return f, nil
}

func (h *hub[T]) leave(f *follower[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range h.followers {
		if other == f {
			h.followers = append(h.followers[:i:i], h.followers[i+1:]...)
			break
		}
	}
	f.backlog.close()
}

// subscribe adds a subscription and, if they run, starts it.
func (h *hub[T]) subscribe(deliver func(Change[T]), opts SubscribeOptions) (*Subscription[T], error) {
	s := &Subscription[T]{
		opts:    opts,
		deliver: deliver,
		clock:   h.clock,
		logger:  h.logger,
		synced:  make(chan struct{}),
		done:    make(chan struct{}),
	}
	if opts.Syncs == nil {
		opts.Syncs = never
	}
	f, err := h.join(opts.Bound, opts.Syncs)
	if err != nil {
		return nil, err
	}
	s.backlog = f.backlog
	s.leave = func() {
		h.leave(f)
		s.begin.Do(func() { close(s.done) })
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.joined++
	if s.opts.Name == "" {
		s.opts.Name = fmt.Sprintf("subscriber %d", h.joined)
	}
	switch {
	case h.closed:
		s.begin.Do(func() { close(s.done) })
	case opts.Inline:
	case h.ctx != nil:
		h.run(s)
	default:
		h.waiting = append(h.waiting, s)
	}
	return s, nil
}

func never() bool { return false }

// run starts a subscription unless it has been closed before.
func (h *hub[T]) run(s *Subscription[T]) {
	s.begin.Do(func() {
		h.running.Go(func() { s.run(h.ctx) })
	})
}

// start lets subscriptions run.
func (h *hub[T]) start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx = ctx
	for _, s := range h.waiting {
		h.run(s)
	}
	h.waiting = nil
}

// stop ends all followers and waits for the subscriptions that run.
func (h *hub[T]) stop() {
	h.mu.Lock()
	h.closed = true
	for _, f := range h.followers {
		f.backlog.close()
	}
	h.followers = nil
	h.gate.close()
	h.mu.Unlock()
	h.running.Wait()
}

// gate lets those pass who wait for a version.
type gate struct {
	waiting map[chan struct{}]Version
}

func (g *gate) wait(ch chan struct{}, v Version) {
	if g.waiting == nil {
		g.waiting = map[chan struct{}]Version{}
	}
	g.waiting[ch] = v
}

// reach opens for everyone who waits for v or less. What cannot be compared is
// let through to find that out.
func (g *gate) reach(v Version) {
	for ch, want := range g.waiting {
		if c, ok := v.Compare(want); !ok || c >= 0 {
			close(ch)
			delete(g.waiting, ch)
		}
	}
}

func (g *gate) close() {
	for ch := range g.waiting {
		close(ch)
	}
	g.waiting = nil
}

// await says whether v has been reached, else gives a channel that is closed
// when it may have been.
func (h *hub[T]) await(v Version) (reached bool, wait chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.store.Version()
	if now != "" {
		c, ok := now.Compare(v)
		if !ok {
			return false, nil, fmt.Errorf("the source is at %q: %w", now, ErrOpaqueVersion)
		}
		if c >= 0 {
			return true, nil, nil
		}
	}
	if h.closed {
		return false, nil, fmt.Errorf("the replica has %w", ErrStopped)
	}
	wait = make(chan struct{})
	h.gate.wait(wait, v)
	return false, wait, nil
}

// giveUp takes back an await.
func (h *hub[T]) giveUp(wait chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.gate.waiting, wait)
}
