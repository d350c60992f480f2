package tarn

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// changeBuilder turns the events of one watch into changes of the store.
//
// For a store that can be asked, an event becomes what it means there: an EventAdded
// of a present key is an update, a Deleted of an absent one nothing, a state
// that the store has, or that is older than what it has, a replay that is
// dropped. Any other store gets each event as it is.
type changeBuilder[T any] struct {
	r *Reflector[T]
	// settled is false while events may come out of the order of versions: a
	// watch from no version begins with what is there.
	settled bool
	// suspect says that something was older than what had been seen.
	suspect bool

	changes []Change[T]
	// last finds the latest change of a key within changes.
	last map[Key]int
	at   Version
}

func (r *Reflector[T]) newChangeBuilder() *changeBuilder[T] {
	return &changeBuilder[T]{
		r:       r,
		settled: r.version != Latest && r.version != Any,
		changes: make([]Change[T], 0, eventBatch),
		last:    make(map[Key]int, eventBatch),
		at:      r.version,
	}
}

// take applies a batch of events.
func (d *changeBuilder[T]) take(ctx context.Context, events []Event[T]) error {
	for _, e := range events {
		if !d.settled && e.Type != EventAdded && e.Type != EventUndecodable {
			if err := d.flush(ctx); err != nil {
				return err
			}
			d.settled = true
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
			// By itself, so that a store can tell it from a change.
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
			d.r.unreadable.lost(d.r.opts.Clock.Now(), true)
		}
	}
	if err := d.flush(ctx); err != nil {
		return err
	}
	d.r.monitor.heard(d.r.version, len(events))
	return nil
}

// object adds what an event means to the changes.
func (d *changeBuilder[T]) object(ctx context.Context, e Event[T]) error {
	r := d.r
	if bad := e.Bad; bad.Err != nil {
		if e.Type == EventDeleted && bad.Key != "" {
			d.gone(ctx, Item[T]{Meta: Meta{Key: bad.Key, Version: bad.Version}}, bad.Err)
			d.reach(bad.Version)
			return nil
		}
		return d.bad(ctx, bad)
	}
	item, err := r.take(e.Object)
	if err != nil && (e.Type != EventDeleted || item.Key == "") {
		err := d.bad(ctx, BadObject{Key: item.Key, Version: item.Version, Err: err})
		d.reach(item.Version)
		return err
	}
	if err != nil {
		// Gone is gone, whatever its last state looked like.
		d.gone(ctx, item, err)
		d.reach(item.Version)
		return nil
	}
	if r.reader == nil {
		d.add(Change[T]{Type: asTold[e.Type], Key: item.Key, Object: item.Object, Version: item.Version})
	} else if c, ok := d.meaning(e.Type, item); ok {
		d.add(c)
	} else {
		r.forgive(item.Meta, false)
	}
	d.reach(item.Version)
	return nil
}

// bad reports an object that could not be taken. What good was said of it before
// is written first, so that it does not redeem what comes after.
func (d *changeBuilder[T]) bad(ctx context.Context, bad BadObject) error {
	if _, pending := d.last[bad.Key]; pending {
		if err := d.flush(ctx); err != nil {
			return err
		}
	}
	d.r.reject(ctx, bad)
	if bad.Key == "" {
		d.r.unreadable.lost(d.r.opts.Clock.Now(), false)
	}
	return nil
}

// gone deletes an object whose final state could not be taken: what was held is
// the last that is known of it.
func (d *changeBuilder[T]) gone(ctx context.Context, item Item[T], err error) {
	d.r.opts.OnBad(ctx, BadObject{Key: item.Key, Version: item.Version, Err: fmt.Errorf("told as deleted: %w", err)})
	if d.r.reader == nil {
		return
	}
	if c, ok := d.meaning(EventDeleted, item); ok {
		c.Missed, c.Object = true, c.Old
		d.add(c)
	} else {
		d.r.forgive(item.Meta, true)
	}
}

var asTold = map[EventType]ChangeType{EventAdded: Add, EventModified: Update, EventDeleted: Delete}

// forgive takes a key out of quarantine after a good word of it, unless that is
// an old one, from before it was bad.
func (r *Reflector[T]) forgive(m Meta, written bool) {
	if !r.monitor.bad.empty() {
		r.monitor.bad.redeem(m, written)
	}
}

// meaning finds out what an event changes, and whether it changes anything.
func (d *changeBuilder[T]) meaning(t EventType, item Item[T]) (Change[T], bool) {
	held, present := d.held(item.Key)
	c := Change[T]{Key: item.Key, Object: item.Object, Version: item.Version}
	if !present {
		if t == EventDeleted {
			d.r.deleted.put(item.Key, item.Version)
			return c, false
		}
		if d.r.deleted.covers(item.Key, item.Version) {
			d.suspect = true
			return c, false
		}
		c.Type = Add
		return c, true
	}
	c.Old = held
	before, err := d.r.describe(held)
	// What is held may itself be of a future that a rewind has undone, if no good
	// state of it came since: then it is newer than all that was seen.
	if err == nil && item.Version.OlderThan(before.Version) && !d.at.OlderThan(before.Version) {
		d.suspect = true
		return c, false
	}
	if t == EventDeleted {
		c.Type = Delete
		d.r.deleted.put(item.Key, item.Version)
		return c, true
	}
	if order, known := item.Version.Compare(before.Version); err == nil && known && order == 0 && before.UID == item.UID && d.r.equal(held, item.Object) {
		return c, false
	}
	c.Type = Update
	return c, true
}

// held is what the store has of a key, or will have after the changes so far.
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

// reach moves the version on. It never goes back: something older than what was
// seen is suspect.
func (d *changeBuilder[T]) reach(v Version) {
	switch {
	case !d.settled || v == "":
	case v.OlderThan(d.at):
		d.suspect = true
	default:
		if c, ok := v.Compare(d.at); ok && c > 0 {
			d.r.rewindSuspected = false
		}
		d.at = v
	}
}

// flush gives the changes so far to the store.
func (d *changeBuilder[T]) flush(ctx context.Context) error {
	if len(d.changes) == 0 && d.at == d.r.version {
		return nil
	}
	return d.write(ctx)
}

func (d *changeBuilder[T]) write(ctx context.Context) error {
	err := d.r.apply(d.changes, d.r.at(d.at))
	if Taken(err) {
		d.forgiveWritten(err)
	}
	err = d.r.rejectSome(ctx, err)
	clear(d.changes)
	d.changes = d.changes[:0]
	clear(d.last)
	if err != nil {
		return d.r.explain("the store did not take the changes up to", d.at, err)
	}
	d.r.version = d.at
	d.r.reached()
	return nil
}

// forgiveWritten takes out of quarantine what the store has taken in full.
func (d *changeBuilder[T]) forgiveWritten(err error) {
	if d.r.monitor.bad.empty() {
		return
	}
	some, _ := errors.AsType[ObjectErrors](err)
	for _, c := range d.changes {
		if !slices.ContainsFunc(some, func(b BadObject) bool { return b.Key == c.Key }) {
			d.r.forgive(Meta{Key: c.Key, Version: c.Version}, true)
		}
	}
}
