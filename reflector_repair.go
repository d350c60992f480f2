package tarn

import (
	"context"
	"errors"
	"iter"
	"time"
)

const (
	// repairEvery is the wait between two reads of damaged objects.
	repairEvery = 100 * time.Millisecond
	// repairRetry is the wait after a failed read.
	repairRetry = 10 * time.Second
	// repairReads is the largest number of damaged objects that are read one by one; more
	// are repaired by a read of the whole state, at most once in repairLists.
	repairReads = 100
	repairLists = 10 * time.Minute
	// repairTries is how often an object is read while the source has another state than
	// the copy each time. Then the object counts as repaired if the copy has another
	// version than the damaged one, since that state shares nothing with it.
	repairTries = 10
)

// errDamaged ends a wait for the source because there is an object to repair.
var errDamaged = errors.New("an object is damaged")

// repairPace says when the next damaged object may be read, and when the whole state
// was last read because of damage.
type repairPace struct {
	next, listed time.Time
}

// maintain runs the source's background work until ctx ends. The returned function
// waits for its end.
func (r *Reflector[T]) maintain(ctx context.Context) (wait func()) {
	m := maintainerOf(r.source)
	if m == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Maintain(ctx, maintainedCopy[T]{ctx, r})
	}()
	return func() { <-done }
}

// maintainerOf finds the Maintainer in a chain of wrapped sources; nil if there is none.
func maintainerOf[T any](source Source[T]) Maintainer[T] {
	for source != nil {
		if m, ok := source.(Maintainer[T]); ok {
			return m
		}
		wrapper, ok := source.(interface{ Unwrap() Source[T] })
		if !ok {
			return nil
		}
		source = wrapper.Unwrap()
	}
	return nil
}

// maintainedCopy is the [Copy] that a reflector gives to its source.
type maintainedCopy[T any] struct {
	ctx context.Context
	r   *Reflector[T]
}

func (c maintainedCopy[T]) All() iter.Seq2[Key, T] {
	if c.r.reader == nil || c.r.holder == nil {
		return func(func(Key, T) bool) {}
	}
	return c.r.reader.All()
}

func (c maintainedCopy[T]) Repair(found []Damage) {
	r := c.r
	versionOf := func(key Key) (Version, bool) {
		if r.reader == nil {
			return "", false
		}
		held, ok := r.reader.Get(key)
		if !ok {
			return "", false
		}
		return r.versionOf(held), true
	}
	for _, damage := range r.monitor.damage.add(found, versionOf, r.opts.Clock.Now()) {
		r.opts.OnDamage(c.ctx, damage)
	}
}

// repairDue is when to read a damaged object, zero if none is damaged.
func (r *Reflector[T]) repairDue() time.Time {
	_, waiting := r.monitor.damage.next()
	switch {
	case waiting == 0:
		return time.Time{}
	case waiting > repairReads && !r.pace.listed.IsZero():
		if due := r.pace.listed.Add(repairLists); due.After(r.pace.next) {
			return due
		}
	}
	if r.pace.next.IsZero() {
		return r.opts.Clock.Now()
	}
	return r.pace.next
}

// repairSome reads a damaged object, if one is due, or asks for the whole state if there
// are many.
func (r *Reflector[T]) repairSome(ctx context.Context) error {
	now := r.opts.Clock.Now()
	if due := r.repairDue(); due.IsZero() || now.Before(due) {
		return nil
	}
	r.pace.next = now.Add(repairEvery)
	key, waiting := r.monitor.damage.next()
	if waiting > repairReads {
		return r.relistDamaged(now)
	}
	page, err := r.list(ctx, ListQuery{AtLeast: r.version, Key: key}, probeDeadline)
	if err != nil {
		r.pace.next = now.Add(repairRetry)
		if ctx.Err() == nil {
			r.report(ctx, r.explain("read "+string(key)+" again at", r.version, err))
		}
		return nil
	}
	return r.repairFrom(ctx, key, page)
}

// relistDamaged ends the pass so that the whole state is read, and compared by content.
func (r *Reflector[T]) relistDamaged(now time.Time) error {
	r.pace.listed = now
	r.readNext(nextRead{cause: causeDamaged, version: consistent, afresh: true})
	r.waits.restart()
	return errRelist
}

// repairFrom repairs the objects of a page. A source that cannot read a single object
// returns all of them.
func (r *Reflector[T]) repairFrom(ctx context.Context, asked Key, page Page[T]) error {
	var changes []Change[T]
	for _, object := range page.Items {
		m, err := r.describe(object)
		if err != nil || !r.monitor.damage.has(m.Key) {
			continue
		}
		held, ok := r.reader.Get(m.Key)
		if !ok || m.Version != r.versionOf(held) {
			continue // the watch brings it
		}
		item, kept, err := r.convertAs(m, object)
		switch {
		case err != nil: // the transform fails: the held object stays
		case r.same(r.lookUp(item.Key), item, kept):
			r.monitor.damage.repaired(m.Key)
		default:
			changes = append(changes, Change[T]{Type: Update, Rewound: true, Key: item.Key, Old: held, Object: item.Object, Version: item.Version})
		}
	}
	if err := r.applyRepaired(ctx, changes); err != nil {
		return err
	}
	if r.monitor.damage.has(asked) {
		return r.postponeRepair(asked)
	}
	return nil
}

func (r *Reflector[T]) applyRepaired(ctx context.Context, changes []Change[T]) error {
	if len(changes) == 0 {
		return nil
	}
	if err := r.rejectSome(ctx, r.apply(changes, r.at(r.version))); err != nil {
		return r.explain("the store did not take repaired objects at", r.version, err)
	}
	for _, c := range changes {
		r.monitor.damage.repaired(c.Key)
	}
	return nil
}

// postponeRepair is for an object that has a newer state at the source, or is deleted
// there. The watch delivers that; if it does not, the whole state is read.
func (r *Reflector[T]) postponeRepair(key Key) error {
	now := r.opts.Clock.Now()
	r.pace.next = now.Add(time.Second)
	x := r.monitor.damage.postpone(key)
	held, ok := r.reader.Get(key)
	switch {
	case !ok, x.tries >= repairTries && r.versionOf(held) != x.version:
		r.monitor.damage.repaired(key)
	case x.tries >= repairTries && now.Sub(r.pace.listed) >= repairLists:
		return r.relistDamaged(now)
	case x.tries >= repairTries:
		r.pace.next = now.Add(repairRetry)
	}
	return nil
}
