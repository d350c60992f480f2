package tarn

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// backlog holds the changes that one subscriber has not seen yet.
//
// It is a queue while it is short, and a line of keys with the pending changes of
// each once it is long. A subscriber that stalls for an hour therefore costs memory
// by the number of keys, not by the number of changes.
//
// Why not a channel: its bound would either block the store, and with it every
// other subscriber, or drop changes, and a dropped delete is never seen again.
// Why not always fold: most subscribers keep up, and some rely on seeing every step.
//
// Invariants: the queue holds changes as published, in batches that all subscribers
// share. The line holds each key once, at the place of its oldest pending change,
// with at most a delete and one change after it. Folding keeps the first Old of a key,
// so that the Old of each change is the Object that the subscriber got last.
//
// A subscriber that does not ask for moves gets no change when an object enters or leaves
// the shard. So for one key an add may follow an add, and an update a delete: that is
// another object of the same name.
type backlog[T any] struct {
	mu   sync.Mutex
	wake chan struct{}
	// bound is the number of changes beyond which they are folded.
	bound func() int

	queue []batch[T]
	// count is the number of waiting changes, without the mark.
	count int

	folded bool
	line   []*pending[T]
	byKey  map[Key]*pending[T]
	// dead counts the entries of the line without a change.
	dead int

	// inFlight counts the changes of the last take that are not delivered yet;
	// taken holds the time at which each change of that take was published.
	inFlight atomic.Int64
	taken    []time.Time

	closed atomic.Bool
}

// batch holds changes that were published together. It is immutable.
type batch[T any] struct {
	at      time.Time
	changes []Change[T]
}

// pending holds the undelivered changes of one key.
type pending[T any] struct {
	at   time.Time
	next [2]Change[T]
	n    int
}

// marked is the type of a Change that marks the end of the first state. It is in a
// batch of its own.
const marked ChangeType = 0

func newBacklog[T any](bound func() int) *backlog[T] {
	return &backlog[T]{wake: make(chan struct{}, 1), bound: bound}
}

// add appends a batch.
func (b *backlog[T]) add(at time.Time, changes []Change[T]) {
	if len(changes) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return
	}
	if b.folded {
		for _, c := range changes {
			b.fold(at, c)
		}
	} else {
		b.queue = append(b.queue, batch[T]{at, changes})
		b.count += len(changes)
		if b.count > b.bound() {
			b.foldAll()
		}
	}
	b.signal()
}

// mark appends the end of the first state.
func (b *backlog[T]) mark(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return
	}
	mark := Change[T]{Type: marked}
	if b.folded {
		b.line = append(b.line, &pending[T]{at: at, next: [2]Change[T]{mark}, n: 1})
	} else {
		b.queue = append(b.queue, batch[T]{at, []Change[T]{mark}})
	}
	b.signal()
}

func (b *backlog[T]) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// foldAll turns the queue into the line.
func (b *backlog[T]) foldAll() {
	queue := b.queue
	b.queue, b.count = nil, 0
	b.folded = true
	b.byKey = map[Key]*pending[T]{}
	for _, q := range queue {
		for _, c := range q.changes {
			b.fold(q.at, c)
		}
	}
}

// fold adds a change to what is pending for its key.
func (b *backlog[T]) fold(at time.Time, c Change[T]) {
	if c.Type == marked {
		b.line = append(b.line, &pending[T]{at: at, next: [2]Change[T]{c}, n: 1})
		return
	}
	p := b.byKey[c.Key]
	if p == nil {
		p = &pending[T]{at: at, next: [2]Change[T]{c}, n: 1}
		b.byKey[c.Key] = p
		b.line = append(b.line, p)
		b.count++
		return
	}
	before := p.n
	p.fold(c)
	b.count += p.n - before
	if p.n == 0 {
		delete(b.byKey, c.Key)
		b.dead++
		b.compact()
	}
}

// fold merges a change into the pending ones, so that they still lead from the state
// that the subscriber has to the current one.
func (p *pending[T]) fold(c Change[T]) {
	last := &p.next[p.n-1]
	if last.Type == Delete && c.Type != Delete {
		p.next[1] = c
		p.n = 2
		return
	}
	switch c.Type {
	case Sync:
		// The pending change delivers the object anyway.
	case Update:
		switch last.Type {
		case Add, Update:
			last.Object, last.Version, last.Rewound = c.Object, c.Version, last.Rewound || c.Rewound
		case Sync:
			c.Old = last.Old
			*last = c
		}
	case Add:
		if last.Type != Add {
			c.Type, c.Old = Update, last.Old
		}
		*last = c
	case Delete:
		switch {
		case last.Type == Add, p.n == 2:
			// The subscriber never saw this object. If the one before only left the shard,
			// it is gone now unless this one left too.
			*last = Change[T]{}
			p.n--
			p.next[0].Moved = p.next[0].Moved && c.Moved
		case last.Type != Delete:
			c.Old = last.Old
			*last = c
		}
	}
}

// compact drops dead entries once they are the majority.
func (b *backlog[T]) compact() {
	if b.dead < 1024 || b.dead < len(b.line)/2 {
		return
	}
	live := b.line[:0]
	for _, p := range b.line {
		if p.n > 0 {
			live = append(live, p)
		}
	}
	clear(b.line[len(live):])
	b.line, b.dead = live, 0
}

// take moves the next changes, at most cap(buf), into buf, which must have room for
// two. It waits for the first one, and returns nothing when ctx ends or the backlog is
// closed.
func (b *backlog[T]) take(ctx context.Context, buf []Change[T]) []Change[T] {
	for !b.ended(ctx) {
		b.mu.Lock()
		buf = b.pop(buf[:0])
		b.mu.Unlock()
		if len(buf) > 0 {
			return buf
		}
		select {
		case <-b.wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// ended reports whether delivery must stop, even of changes that take returned.
func (b *backlog[T]) ended(ctx context.Context) bool { return ctx.Err() != nil || b.closed.Load() }

func (b *backlog[T]) pop(buf []Change[T]) []Change[T] {
	room := cap(buf)
	b.taken = b.taken[:0]
	for len(buf) < room && len(b.queue) > 0 {
		first := &b.queue[0]
		n := min(room-len(buf), len(first.changes))
		buf = append(buf, first.changes[:n]...)
		b.took(first.at, first.changes[:n])
		first.changes = first.changes[n:]
		if len(first.changes) == 0 {
			*first = batch[T]{}
			b.queue = b.queue[1:]
		}
	}
	for len(b.line) > 0 && len(buf)+b.line[0].n <= room {
		p := b.line[0]
		b.line[0] = nil
		b.line = b.line[1:]
		if p.n == 0 {
			b.dead--
			continue
		}
		buf = append(buf, p.next[:p.n]...)
		b.took(p.at, p.next[:p.n])
		delete(b.byKey, p.next[0].Key)
	}
	if b.folded && len(b.line) == 0 {
		b.folded, b.line, b.byKey = false, nil, nil
	}
	b.inFlight.Store(int64(len(b.taken)))
	return buf
}

// took records that changes left the backlog.
func (b *backlog[T]) took(at time.Time, changes []Change[T]) {
	if changes[0].Type == marked {
		return
	}
	b.count -= len(changes)
	for range changes {
		b.taken = append(b.taken, at)
	}
}

// handed records that one more change of the last take was delivered.
func (b *backlog[T]) handed() { b.inFlight.Add(-1) }

// lag returns the number of undelivered changes, and since when the oldest waits.
func (b *backlog[T]) lag() (count int, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return 0, time.Time{}
	}
	if inFlight := int(b.inFlight.Load()); inFlight > 0 {
		return b.count + inFlight, b.taken[len(b.taken)-inFlight]
	}
	if b.count == 0 {
		return 0, time.Time{}
	}
	return b.count, b.oldest()
}

// oldest is when the first waiting change was published. It drops dead entries at the
// head of the line, so that the next call does not walk them again.
func (b *backlog[T]) oldest() time.Time {
	for _, q := range b.queue {
		if q.changes[0].Type != marked {
			return q.at
		}
	}
	for b.line[0].n == 0 {
		b.line[0] = nil
		b.line = b.line[1:]
		b.dead--
	}
	i := slices.IndexFunc(b.line, func(p *pending[T]) bool { return p.n > 0 && p.next[0].Type != marked })
	return b.line[i].at
}

// close drops what is pending and ends every take.
func (b *backlog[T]) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Swap(true) {
		return
	}
	b.queue, b.line, b.byKey, b.taken, b.count, b.dead = nil, nil, nil, nil, 0, 0
	close(b.wake)
}
