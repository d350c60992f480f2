package tarn

import (
	"context"
	"errors"
	"strings"
)

// errUnsureGone marks what a list left out while it held items without a name.
var errUnsureGone = errors.New("missing in a list that also held objects which could not be read; kept until a clean list shows whether it is gone")

// relisting gathers one whole state of the source and writes it to the store.
//
// A store that can be read is compared with each item as it arrives. Unchanged items
// are dropped at once, so that a relist of a million unchanged objects holds a million
// keys and not one object twice. At the end the differences are applied in one step,
// and readers see the state before or the state after. A store that cannot be read
// gets the whole list.
//
// It accepts any number of puts and removes, because a stream of initial events
// carries changes too.
type relisting[T any] struct {
	r *Reflector[T]
	// byContent says that equal versions prove nothing: a source that went back in
	// time may have reused them, a recheck trusts none, and a program may have put
	// any object into the store before the start.
	byContent bool
	// at is the index of a key in items, or unchanged.
	at    map[Key]int
	items []newItem[T]
	// holes holds the indexes in items that a later event emptied.
	holes map[int]struct{}
	// badKeys holds the keys of bad items.
	badKeys map[Key]struct{}
	// damaged holds the objects that are compared by content because a program wrote
	// to them.
	damaged map[Key]bool
	// fill takes the items instead, if the store is empty.
	fill *filling[T]
	// rejected counts bad items, keyless those without a readable key. Such an item
	// could be any object, so a list with one deletes nothing.
	rejected, keyless int
}

const unchanged = -1

// newItem is an item that differs from the store, with the store's object.
type newItem[T any] struct {
	Item[T]
	old     T
	present bool
}

// heldObject is the store's object under a key.
type heldObject[T any] struct {
	object T
	// meta is the result of Describe, readable whether it succeeded.
	meta              Meta
	present, readable bool
}

// keyFor returns key, which may be a piece of the text of a listed object, in a form that
// does not keep that text in memory: it is that of the held object, if it is the same.
func (h heldObject[T]) keyFor(key Key) Key {
	if h.meta.Key == key {
		return h.meta.Key
	}
	return Key(strings.Clone(string(key)))
}

// lookUp reads an object from the store, once for each item of a state.
func (r *Reflector[T]) lookUp(key Key) (held heldObject[T]) {
	if r.reader == nil {
		return held
	}
	if held.object, held.present = r.reader.Get(key); held.present {
		meta, err := r.describe(held.object)
		held.meta, held.readable = meta, err == nil
	}
	return held
}

func (r *Reflector[T]) newRelisting() *relisting[T] {
	l := &relisting[T]{r: r, byContent: r.next.byContent() || r.unfamiliar(), at: map[Key]int{}, holes: map[int]struct{}{}, badKeys: map[Key]struct{}{}, damaged: r.monitor.damage.keys()}
	if r.fills() {
		l.fill = &filling[T]{r: r}
	}
	return l
}

// unfamiliar reports whether the objects in the store, if there are any, are neither the
// source's nor loaded: a program put them there before the start.
func (r *Reflector[T]) unfamiliar() bool { return !r.synced && !r.loaded }

// put adds an object, or replaces it by a later state.
func (l *relisting[T]) put(ctx context.Context, object T) {
	m, err := l.r.describe(object)
	if err != nil {
		l.bad(ctx, BadObject{Key: m.Key, Version: m.Version, Err: err})
		return
	}
	held := l.r.lookUp(m.Key)
	if l.confirms(held, m) {
		l.keep(held.keyFor(m.Key))
		return
	}
	item, kept, err := l.r.convertAs(m, object)
	if err != nil {
		l.bad(ctx, BadObject{Key: item.Key, Version: item.Version, Err: err})
		return
	}
	if item.Key != m.Key {
		held = l.r.lookUp(item.Key)
	}
	if l.r.same(held, item, kept) {
		l.keep(held.keyFor(item.Key))
		return
	}
	delete(l.badKeys, item.Key)
	if l.fill != nil {
		l.fill.put(Change[T]{Type: Add, Key: item.Key, Object: item.Object, Version: item.Version})
		return
	}
	if i, ok := l.at[item.Key]; ok && i != unchanged {
		l.items[i].Item = item
		return
	}
	l.at[item.Key] = len(l.items)
	l.items = append(l.items, newItem[T]{item, held.object, held.present})
}

// confirms reports whether the held object is this state, by uid and version alone,
// before any transform.
func (l *relisting[T]) confirms(held heldObject[T], m Meta) bool {
	return held.readable && held.meta.UID == m.UID && held.meta.Version == m.Version &&
		m.Version != "" && !l.byContent && !l.r.unordered() && !l.damaged[m.Key]
}

// empty reports whether there were no items.
func (l *relisting[T]) empty() bool {
	return len(l.at) == 0 && l.rejected == 0 && (l.fill == nil || l.fill.empty())
}

// keep records that the store's object is unchanged.
func (l *relisting[T]) keep(key Key) {
	l.drop(key)
	l.at[key] = unchanged
	delete(l.badKeys, key)
}

// remove removes an object that an initial event deleted.
func (l *relisting[T]) remove(ctx context.Context, object T) {
	item, err := l.r.convert(object)
	switch {
	case err == nil:
		l.removeKey(item.Key)
	case item.Key != "":
		l.gone(ctx, BadObject{Key: item.Key, Version: item.Version, Err: err})
	default:
		l.bad(ctx, BadObject{Version: item.Version, Err: err})
	}
}

// gone removes a bad object that has a key.
func (l *relisting[T]) gone(ctx context.Context, bad BadObject) {
	bad = l.r.named(bad)
	l.r.opts.OnBad(ctx, bad)
	l.removeKey(bad.Key)
}

func (l *relisting[T]) removeKey(key Key) {
	l.drop(key)
	delete(l.at, key)
	delete(l.badKeys, key)
}

// bad records an object that could not be taken: its last good state stays.
func (l *relisting[T]) bad(ctx context.Context, bad BadObject) {
	bad = l.r.named(bad)
	if l.rejected++; l.rejected <= maxReports {
		l.r.reject(ctx, bad)
	} else {
		l.r.monitor.bad.put(bad, false, l.r.opts.Clock.Now())
	}
	if bad.Key == "" {
		l.keyless++
		return
	}
	key := Key(strings.Clone(string(bad.Key)))
	l.drop(key)
	l.at[key] = unchanged
	l.badKeys[key] = struct{}{}
}

// drop removes an item from items, leaving a hole.
func (l *relisting[T]) drop(key Key) {
	if l.fill != nil {
		l.fill.put(Change[T]{Type: Delete, Key: key})
		return
	}
	if i, ok := l.at[key]; ok && i != unchanged {
		l.items[i] = newItem[T]{}
		l.holes[i] = struct{}{}
		delete(l.at, key)
	}
}

// commit writes the gathered state to the store. Only then it updates the marks of bad
// objects, since a state that was not written proves nothing.
func (l *relisting[T]) commit(ctx context.Context, v Version) error {
	l.r.summarize(ctx, l.rejected)
	items := l.items
	if len(l.holes) > 0 {
		items = make([]newItem[T], 0, len(l.items)-len(l.holes))
		for i, item := range l.items {
			if _, hole := l.holes[i]; !hole {
				items = append(items, item)
			}
		}
	}
	l.r.onMissed(l.r.next.gapCause())
	var err error
	switch {
	case l.fill != nil:
		err = l.fill.commit(v)
	case l.r.reader == nil:
		err = l.r.replace(itemsOf(items), l.r.at(v))
	default:
		err = l.r.apply(l.changes(items), l.r.at(v))
	}
	if Taken(err) {
		l.r.monitor.bad.settle(l.verdict, l.keyless)
		l.r.renames.partial = false
		if l.fill == nil {
			present := func(stored Key) bool { _, listed := l.at[stored]; return listed || l.keyless > 0 }
			l.r.renames.keep(present)
			l.r.shard.keep(present)
		}
		for key := range l.damaged {
			l.r.monitor.damage.repaired(key)
		}
	}
	return l.r.rejectSome(ctx, err)
}

// verdict judges an object that was bad before.
func (l *relisting[T]) verdict(key Key) verdict {
	if _, bad := l.badKeys[key]; bad {
		return stillBad
	}
	i, listed := l.at[key]
	if l.fill != nil {
		_, listed = l.r.reader.Get(key)
	}
	switch {
	case listed && l.fill == nil && i == unchanged:
		return asHeld
	case listed:
		return good
	case l.keyless > 0:
		return stillBad
	default:
		return good
	}
}

// changes is the difference between the store and the gathered state: deletes first,
// then adds and updates, then, if a subscriber wants them, Syncs of unchanged objects.
// There are no Syncs while a copy from disk catches up: subscribers have just got these
// objects. They have not got what a program put into the store before the start.
func (l *relisting[T]) changes(items []newItem[T]) []Change[T] {
	r := l.r
	wanted := (r.synced || r.unfamiliar()) && r.wantsSync()
	changes := make([]Change[T], 0, len(items))
	var same []Change[T]
	for key, held := range r.reader.All() {
		switch i, listed := l.at[key]; {
		case !listed && r.movedOut(key, held):
			changes = append(changes, movedAway(key, held, r.versionOf(held)))
		case listed && i == unchanged && wanted:
			same = append(same, Change[T]{Type: Sync, Key: key, Old: held, Object: held, Version: r.versionOf(held)})
		case listed:
		case l.keyless > 0:
			r.monitor.bad.put(BadObject{Key: key, Err: errUnsureGone}, false, r.opts.Clock.Now())
		default:
			changes = append(changes, Change[T]{Type: Delete, Missed: true, Key: key, Old: held, Object: held, Version: r.versionOf(held)})
		}
	}
	for _, item := range items {
		c := Change[T]{Type: Add, Initial: !r.synced, Key: item.Key, Object: item.Object, Version: item.Version}
		if !item.present {
			c.Moved = r.shard.movedIn(item.Meta)
		} else {
			c.Type, c.Initial, c.Rewound, c.Old = Update, false, r.next.byContent() || l.damaged[item.Key], item.old
		}
		changes = append(changes, c)
	}
	return append(changes, same...)
}

// versionOf is the version of an object that the store holds, empty if it cannot
// be read.
func (r *Reflector[T]) versionOf(held T) Version { return r.metaOf(held).Version }

// metaOf is the identity of an object that the store holds, or the parts of it that can be read.
func (r *Reflector[T]) metaOf(held T) Meta {
	m, _ := r.describe(held)
	return m
}

// same reports whether the store has an item already, by content, for states whose
// version proves nothing; kept is the meta of the transformed object.
func (r *Reflector[T]) same(held heldObject[T], item Item[T], kept Meta) bool {
	return held.readable && held.meta == kept && r.equal(held.object, item.Object)
}

func itemsOf[T any](all []newItem[T]) []Item[T] {
	items := make([]Item[T], len(all))
	for i := range all {
		items[i] = all[i].Item
	}
	return items
}

// equal compares content; a panic of Options.Equal means no.
func (r *Reflector[T]) equal(a, b T) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return r.opts.Equal(a, b)
}
