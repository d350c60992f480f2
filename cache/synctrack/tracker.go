package synctrack

import (
	"sync"
)

// gate opens once, when upstream has synced and nothing is under way. It stays
// open: what starts later does not belong to the initial state.
//
// One lock instead of atomics for its two conditions: with those, two goroutines
// that each bring one of them about can both miss that now both hold.
type gate struct {
	name string

	mu       sync.Mutex
	upstream bool
	opened   bool
	open     chan struct{}
}

func newGate(name string) gate { return gate{name: name, open: make(chan struct{})} }

// Name implements cache.DoneChecker.
func (g *gate) Name() string { return g.name }

// Done is closed when HasSynced becomes true.
func (g *gate) Done() <-chan struct{} { return g.open }

// HasSynced says whether upstream has synced and all that was started has been
// finished since.
func (g *gate) HasSynced() bool {
	select {
	case <-g.open:
		return true
	default:
		return false
	}
}

// openIf needs the lock.
func (g *gate) openIf(idle bool) {
	if idle && g.upstream && !g.opened {
		g.opened = true
		close(g.open)
	}
}

// SingleFileTracker counts what is under way. Make one with
// [NewSingleFileTracker].
type SingleFileTracker struct {
	gate
	underWay int
}

// NewSingleFileTracker returns a tracker; waiters see its name.
func NewSingleFileTracker(name string) *SingleFileTracker {
	return &SingleFileTracker{gate: newGate(name)}
}

// Start counts one more. Call it before upstream says it has synced, that is, in
// the handler.
func (t *SingleFileTracker) Start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.underWay++
}

// Finished counts one less. It panics if more were finished than started, which
// means that HasSynced may have been true too early.
func (t *SingleFileTracker) Finished() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.underWay--
	if t.underWay < 0 {
		panic("synctrack: negative counter: Finished was called more often than Start, so HasSynced cannot be trusted")
	}
	t.openIf(t.underWay == 0)
}

// UpstreamHasSynced says that the initial list has been given out.
func (t *SingleFileTracker) UpstreamHasSynced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upstream = true
	t.openIf(t.underWay <= 0)
}

// AsyncTracker remembers the keys under way. Make one with [NewAsyncTracker].
type AsyncTracker[T comparable] struct {
	gate
	underWay map[T]struct{}
}

// NewAsyncTracker returns a tracker; waiters see its name.
func NewAsyncTracker[T comparable](name string) *AsyncTracker[T] {
	return &AsyncTracker[T]{gate: newGate(name), underWay: map[T]struct{}{}}
}

// Start remembers a key, once however often it is started. Call it before
// upstream says it has synced, that is, in the handler.
func (t *AsyncTracker[T]) Start(key T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.underWay[key] = struct{}{}
}

// Finished forgets a key. An unknown key is no error.
func (t *AsyncTracker[T]) Finished(key T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.underWay, key)
	t.openIf(len(t.underWay) == 0)
}

// UpstreamHasSynced says that the initial list has been given out.
func (t *AsyncTracker[T]) UpstreamHasSynced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upstream = true
	t.openIf(len(t.underWay) == 0)
}
