package tarn

import (
	"context"
	"errors"
)

// errUnsureGone marks what a list left out while it held items without a name.
var errUnsureGone = errors.New("missing in a list that also held objects which could not be read; kept until a clean list tells whether it is gone")

// relisting gathers one whole state of the source and brings the store to it.
//
// A store that can be asked is compared item by item as they come: what is
// unchanged is dropped at once, so that a relist of a million unchanged objects
// holds a million keys and not one object twice; at the end the differences are
// applied in one step, and readers see the state before or the state after. A
// store that cannot be asked gets the whole list.
//
// It takes puts and removes in any number, because a stream of initial events
// carries changes too.
type relisting[T any] struct {
	r *Reflector[T]
	// byContent says that equal versions prove nothing: a source that went back may
	// have used them again for other content, and a recheck believes none.
	byContent bool
	// at says where an item stands in news, or that it is as the store has it.
	at   map[Key]int
	news []newItem[T]
	// holes are the places in news that a later state left empty.
	holes map[int]struct{}
	// suspects are the bad items that have a name.
	suspects map[Key]struct{}
	// damaged are the objects that are compared by content because a program wrote to
	// them.
	damaged map[Key]bool
	// fill takes the items instead, if the store has nothing to compare them with.
	fill *filling[T]
	// rejected counts bad items, keyless those that could be any object: while
	// there is one, nothing can be said to be gone.
	rejected, keyless int
}

const unchanged = -1

// newItem is an item that is not in the store as it is, with what is there instead.
type newItem[T any] struct {
	Item[T]
	old     T
	present bool
}

// heldObject is what the store has under a key.
type heldObject[T any] struct {
	object T
	// meta is what the object says of itself, readable whether it says that.
	meta              Meta
	present, readable bool
}

// lookUp asks the store for an object, which is done once for each item of a state.
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
	l := &relisting[T]{r: r, byContent: r.next.byContent(), at: map[Key]int{}, holes: map[int]struct{}{}, suspects: map[Key]struct{}{}, damaged: r.monitor.damage.keys()}
	if r.fills() {
		l.fill = &filling[T]{r: r}
	}
	return l
}

// put adds an object, or replaces it by a later state.
func (l *relisting[T]) put(ctx context.Context, object T) {
	m, err := l.r.describe(object)
	if err != nil {
		l.bad(ctx, BadObject{Key: m.Key, Version: m.Version, Err: err})
		return
	}
	held := l.r.lookUp(m.Key)
	if l.confirms(held, m) {
		l.keep(m.Key)
		return
	}
	item, kept, err := l.r.takeAs(m, object)
	if err != nil {
		l.bad(ctx, BadObject{Key: item.Key, Version: item.Version, Err: err})
		return
	}
	if item.Key != m.Key {
		held = l.r.lookUp(item.Key)
	}
	if l.r.same(held, item, kept) {
		l.keep(item.Key)
		return
	}
	delete(l.suspects, item.Key)
	if l.fill != nil {
		l.fill.put(Change[T]{Type: Add, Key: item.Key, Object: item.Object, Version: item.Version})
		return
	}
	if i, ok := l.at[item.Key]; ok && i != unchanged {
		l.news[i].Item = item
		return
	}
	l.at[item.Key] = len(l.news)
	l.news = append(l.news, newItem[T]{item, held.object, held.present})
}

// confirms says whether what is held is this very state, judged by uid and version
// alone and before any transform.
func (l *relisting[T]) confirms(held heldObject[T], m Meta) bool {
	return held.readable && held.meta.UID == m.UID && held.meta.Version == m.Version &&
		m.Version != "" && !l.byContent && !l.damaged[m.Key]
}

// empty says that no item was put.
func (l *relisting[T]) empty() bool {
	return len(l.at) == 0 && l.rejected == 0 && (l.fill == nil || l.fill.empty())
}

// keep notes that the store has an object as it is.
func (l *relisting[T]) keep(key Key) {
	l.drop(key)
	l.at[key] = unchanged
	delete(l.suspects, key)
}

// remove takes an object out again.
func (l *relisting[T]) remove(ctx context.Context, object T) {
	item, err := l.r.take(object)
	switch {
	case err == nil:
		l.leave(item.Key)
	case item.Key != "":
		l.gone(ctx, BadObject{Key: item.Key, Version: item.Version, Err: err})
	default:
		l.bad(ctx, BadObject{Version: item.Version, Err: err})
	}
}

// gone takes an object out of which only the name can be read.
func (l *relisting[T]) gone(ctx context.Context, bad BadObject) {
	l.r.opts.OnBad(ctx, bad)
	l.leave(bad.Key)
}

func (l *relisting[T]) leave(key Key) {
	l.drop(key)
	delete(l.at, key)
	delete(l.suspects, key)
}

// bad notes an object that could not be taken: its last good state stays.
func (l *relisting[T]) bad(ctx context.Context, bad BadObject) {
	if l.rejected++; l.rejected <= maxReports {
		l.r.reject(ctx, bad)
	} else {
		l.r.monitor.bad.put(bad, false, l.r.opts.Clock.Now())
	}
	if bad.Key == "" {
		l.keyless++
		return
	}
	l.drop(bad.Key)
	l.at[bad.Key] = unchanged
	l.suspects[bad.Key] = struct{}{}
}

// drop takes an item out of the news, leaving a hole.
func (l *relisting[T]) drop(key Key) {
	if l.fill != nil {
		l.fill.put(Change[T]{Type: Delete, Key: key})
		return
	}
	if i, ok := l.at[key]; ok && i != unchanged {
		l.news[i] = newItem[T]{}
		l.holes[i] = struct{}{}
		delete(l.at, key)
	}
}

// commit brings the store to the gathered state, and the marks of bad objects to
// what it showed: not before, since a state that is given up proves nothing.
func (l *relisting[T]) commit(ctx context.Context, v Version) error {
	l.r.summarize(ctx, l.rejected)
	news := l.news
	if len(l.holes) > 0 {
		news = make([]newItem[T], 0, len(l.news)-len(l.holes))
		for i, item := range l.news {
			if _, hole := l.holes[i]; !hole {
				news = append(news, item)
			}
		}
	}
	l.r.onRead(l.r.next.gapCause())
	var err error
	switch {
	case l.fill != nil:
		err = l.fill.commit(v)
	case l.r.reader == nil:
		err = l.r.replace(itemsOf(news), l.r.at(v))
	default:
		err = l.r.apply(l.changes(news), l.r.at(v))
	}
	if Taken(err) {
		l.r.monitor.bad.settle(l.verdict, l.keyless)
		for key := range l.damaged {
			l.r.monitor.damage.repaired(key)
		}
	}
	return l.r.rejectSome(ctx, err)
}

// verdict is what the state says of an object that was bad.
func (l *relisting[T]) verdict(key Key) verdict {
	if _, bad := l.suspects[key]; bad {
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

// changes is the difference between the store and the gathered state: first
// what is gone, then what is new, then, for those who want it, what is the same;
// but not while a copy from disk catches up: all of that has just been told.
func (l *relisting[T]) changes(news []newItem[T]) []Change[T] {
	r := l.r
	wanted := r.synced && r.wantsSync()
	changes := make([]Change[T], 0, len(news))
	var same []Change[T]
	for key, held := range r.reader.All() {
		switch i, listed := l.at[key]; {
		case listed && i == unchanged && wanted:
			same = append(same, Change[T]{Type: Sync, Key: key, Old: held, Object: held, Version: r.versionOf(held)})
		case listed:
		case l.keyless > 0:
			r.monitor.bad.put(BadObject{Key: key, Err: errUnsureGone}, false, r.opts.Clock.Now())
		default:
			changes = append(changes, Change[T]{Type: Delete, Missed: true, Key: key, Old: held, Object: held, Version: r.versionOf(held)})
		}
	}
	for _, item := range news {
		c := Change[T]{Type: Add, Initial: !r.synced, Key: item.Key, Object: item.Object, Version: item.Version}
		if item.present {
			c.Type, c.Initial, c.Rewound, c.Old = Update, false, l.byContent || l.damaged[item.Key], item.old
		}
		changes = append(changes, c)
	}
	return append(changes, same...)
}

// versionOf is the version of an object that the store holds, empty if it cannot
// be read.
func (r *Reflector[T]) versionOf(held T) Version {
	m, _ := r.describe(held)
	return m.Version
}

// same says whether the store has an item already, judged by its content, for states
// whose version proves nothing; kept is how the item's object describes itself.
func (r *Reflector[T]) same(held heldObject[T], item Item[T], kept Meta) bool {
	return held.readable && held.meta == kept && r.equal(held.object, item.Object)
}

// itemsOf are the items without what they replace.
func itemsOf[T any](news []newItem[T]) []Item[T] {
	items := make([]Item[T], len(news))
	for i := range news {
		items[i] = news[i].Item
	}
	return items
}

// equal compares content; a panic of the caller's function means no.
func (r *Reflector[T]) equal(a, b T) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return r.opts.Equal(a, b)
}
