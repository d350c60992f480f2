package tarn

import (
	"context"
	"errors"
	"fmt"
)

// changeBuilder turns the events of one watch into changes of the store.
//
// For a store that can be read, the change depends on its content: an EventAdded of
// a present key is an Update, an EventDeleted of an absent key is dropped, unless
// somebody else removed the object, and so is a replay: a state that the store has, or
// an older one. Any other store gets each event unchanged.
type changeBuilder[T any] struct {
	r *Reflector[T]
	// ordered is false while events may not be in version order: a watch without a
	// version begins with the present objects.
	ordered bool
	// sawOlder says that an event was older than the version reached.
	sawOlder bool

	changes []Change[T]
	// last is the index of the latest change of a key within changes.
	last map[Key]int
	at   Version
}

func (r *Reflector[T]) newChangeBuilder() *changeBuilder[T] {
	return &changeBuilder[T]{
		r:       r,
		ordered: r.version != Latest && r.version != Any,
		last:    map[Key]int{},
		at:      r.version,
	}
}

// take applies a batch of events.
func (d *changeBuilder[T]) take(ctx context.Context, events []Event[T]) error {
	for _, e := range events {
		if !d.ordered && e.Type != EventAdded && e.Type != EventUndecodable {
			if err := d.flush(ctx); err != nil {
				return err
			}
			d.ordered = true
		}
		switch {
		case e.Type == EventBookmark && e.Bad.Err != nil:
			d.r.reject(ctx, e.Bad) // it hides no object
		case e.Type == EventAdded || e.Type == EventModified || e.Type == EventDeleted:
			if err := d.object(ctx, e); err != nil {
				return err
			}
		case e.Type == EventBookmark:
			d.r.traits.bookmarks = true
			// In its own write, so that a store can distinguish it from a change.
			if err := d.flush(ctx); err != nil {
				return err
			}
			d.reach(e.Version)
			if err := d.write(ctx); err != nil {
				return err
			}
		case e.Type == EventUndecodable:
			if err := d.flush(ctx); err != nil {
				return err
			}
			d.r.reject(ctx, e.Bad)
			d.r.unreadable.record(d.r.opts.Clock.Now(), true)
		}
	}
	if err := d.flush(ctx); err != nil {
		return err
	}
	d.r.monitor.contacted(d.r.version, len(events))
	return nil
}

// object adds the change for an event, if there is one.
func (d *changeBuilder[T]) object(ctx context.Context, e Event[T]) error {
	r := d.r
	if bad := r.named(e.Bad); bad.Err != nil {
		if e.Type == EventDeleted && bad.Key != "" {
			r.renames.forget(e.Bad.Key)
			r.findRenamed(bad.Key)
			d.gone(ctx, Item[T]{Meta: Meta{Key: bad.Key, Version: bad.Version}}, bad.Err)
			d.reach(bad.Version)
			return nil
		}
		return d.bad(ctx, bad)
	}
	m, err := r.describe(e.Object)
	item := Item[T]{Meta: m}
	if err == nil {
		item, _, err = r.convertAs(m, e.Object)
	}
	if err != nil {
		item.Key = r.renames.of(item.Key)
	}
	if e.Type == EventDeleted {
		r.renames.forget(m.Key)
		delete(r.shard.uids, item.Key)
	}
	if err != nil && (e.Type != EventDeleted || item.Key == "") {
		err := d.bad(ctx, BadObject{Key: item.Key, Version: item.Version, Err: err})
		d.reach(item.Version)
		return err
	}
	if err != nil {
		// A delete counts even if its last state is bad.
		r.findRenamed(item.Key)
		d.gone(ctx, item, err)
		d.reach(item.Version)
		return nil
	}
	if item.Key != m.Key {
		r.clearBad(m, false) // from before its name in the store was known
	}
	if r.reader == nil {
		d.add(Change[T]{Type: changeTypes[e.Type], Key: item.Key, Object: item.Object, Version: item.Version})
	} else if c, ok := d.changeFor(e.Type, item); ok || r.repeats(e.Type) {
		d.add(c)
	} else {
		r.clearBad(item.Meta, false)
	}
	d.reach(item.Version)
	return nil
}

// repeats reports whether subscribers receive an event that changes nothing. Handlers of
// package cache receive each delete that a fake sends, as with client-go: a test may send
// one of an object that was never there.
func (r *Reflector[T]) repeats(t EventType) bool {
	return t == EventDeleted && r.outside != nil && r.unordered()
}

// bad reports an object that could not be taken. It first writes an earlier good state
// of the same object, so that this state does not clear the mark later.
func (d *changeBuilder[T]) bad(ctx context.Context, bad BadObject) error {
	if _, pending := d.last[bad.Key]; pending {
		if err := d.flush(ctx); err != nil {
			return err
		}
	}
	d.r.reject(ctx, bad)
	if bad.Key == "" {
		d.r.unreadable.record(d.r.opts.Clock.Now(), false)
	}
	return nil
}

// gone deletes an object whose final state could not be taken: the held state is the
// last known one.
func (d *changeBuilder[T]) gone(ctx context.Context, item Item[T], err error) {
	d.r.opts.OnBad(ctx, BadObject{Key: item.Key, Version: item.Version, Err: fmt.Errorf("final state of a deleted object: %w", err)})
	if d.r.reader == nil {
		d.add(Change[T]{Type: Delete, Missed: true, Key: item.Key, Version: item.Version})
		return
	}
	if c, ok := d.changeFor(EventDeleted, item); ok {
		c.Missed, c.Object = true, c.Old
		d.add(c)
	} else {
		d.r.clearBad(item.Meta, true)
	}
}

var changeTypes = map[EventType]ChangeType{EventAdded: Add, EventModified: Update, EventDeleted: Delete}

// clearBad removes a key from quarantine after a good state that is at least as new as
// the bad one.
func (r *Reflector[T]) clearBad(m Meta, written bool) {
	if !r.monitor.bad.empty() {
		r.monitor.bad.clear(m, written)
	}
}

// changeFor returns the change that an event makes, and false if it makes none.
func (d *changeBuilder[T]) changeFor(t EventType, item Item[T]) (Change[T], bool) {
	held, present := d.held(item.Key)
	ordered := !d.r.unordered()
	c := Change[T]{Key: item.Key, Object: item.Object, Version: item.Version}
	if !present {
		if t == EventDeleted {
			d.r.deleted.put(item.Key, item.Version)
			c.Type, c.Old = Delete, item.Object
			if d.r.outside != nil {
				if removed, told := d.r.outside.TakeRemoved(item.Key); told {
					c.Old = removed
					return c, true
				}
			}
			return c, false
		}
		if ordered && d.r.deleted.covers(item.Key, item.Version) {
			d.sawOlder = true
			return c, false
		}
		c.Type = Add
		return c, true
	}
	c.Old = held
	before, err := d.r.describe(held)
	// After a rewind the held state may be newer than all versions seen since, if no
	// good state of the object came. Then an older version is not a replay.
	if err == nil && ordered && item.Version.OlderThan(before.Version) && !d.at.OlderThan(before.Version) {
		d.sawOlder = true
		return c, false
	}
	if t == EventDeleted {
		c.Type = Delete
		d.r.deleted.put(item.Key, item.Version)
		return c, true
	}
	if order, known := item.Version.Compare(before.Version); err == nil && ordered && known && order == 0 && before.UID == item.UID && d.r.equal(held, item.Object) {
		return c, false
	}
	c.Type = Update
	return c, true
}

// held is the object of a key once the changes so far are written.
func (d *changeBuilder[T]) held(key Key) (T, bool) {
	if i, ok := d.last[key]; ok {
		c := d.changes[i]
		return c.Object, c.Type != Delete
	}
	return d.r.reader.Get(key)
}

func (d *changeBuilder[T]) add(c Change[T]) {
	d.last[c.Key] = len(d.changes)
	d.changes = append(d.changes, c)
}

// reach advances the version. It never goes back: an older version suggests a rewind.
func (d *changeBuilder[T]) reach(v Version) {
	switch {
	case !d.ordered || v == "":
	case !d.r.unordered() && v.OlderThan(d.at):
		d.sawOlder = true
	default:
		if _, ok := v.Compare(d.at); ok {
			d.r.suspicion.settle()
		}
		d.at = v
	}
}

// flush writes the changes so far to the store.
func (d *changeBuilder[T]) flush(ctx context.Context) error {
	if len(d.changes) == 0 && d.at == d.r.version {
		return nil
	}
	return d.write(ctx)
}

func (d *changeBuilder[T]) write(ctx context.Context) error {
	err := d.r.apply(d.changes, d.r.at(d.at))
	if Taken(err) {
		d.clearWritten(err)
	}
	err = d.r.rejectSome(ctx, err)
	clear(d.changes)
	d.changes = d.changes[:0]
	clear(d.last)
	if err != nil {
		return d.r.explain("the store did not take the changes up to", d.at, err)
	}
	d.r.version = d.at
	d.r.checkCaughtUp()
	return nil
}

// clearWritten removes from quarantine the objects that the store wrote in full.
func (d *changeBuilder[T]) clearWritten(err error) {
	if d.r.monitor.bad.empty() {
		return
	}
	some, _ := errors.AsType[ObjectErrors](err)
	failed := make(map[Key]struct{}, len(some))
	for _, b := range some {
		failed[b.Key] = struct{}{}
	}
	for _, c := range d.changes {
		if _, bad := failed[c.Key]; !bad {
			d.r.clearBad(Meta{Key: c.Key, Version: c.Version}, true)
		}
	}
}
