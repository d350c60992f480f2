package apiserver

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// event is one change of one object.
type event struct {
	kind    watch.EventType
	version int64
	at      time.Time
	// after is the object after the change; for a delete its last state, with the
	// version of the delete. before is nil for a new object.
	after, before *entry

	once   sync.Once
	leaver *entry
}

func (e *event) key() string { return e.after.key }

// left is the event object for a watcher whose selector no longer matches: the
// state before, with the version of the change.
func (e *event) left() *entry {
	e.once.Do(func() {
		e.leaver = e.before
		object, err := e.before.object()
		if err != nil {
			return
		}
		if frozen, err := e.before.in.freeze(object, e.version); err == nil {
			e.leaver = frozen
		}
	})
	return e.leaver
}

// history is what happened to a collection lately, shared by all who watch it.
//
// A watcher is a position in it. So a slow watcher costs nothing but its place,
// and one whose place has been forgotten is behind too far. Why not a buffer for
// each: a thousand watchers would hold a thousand copies of the same pointers,
// and each write would have to fill them.
//
// events[0] is change number first of all; readers keep slices of events, which
// is only ever appended to or replaced. It has all events later than
// floor; watchers that join get no earlier ones.
type history struct {
	events  []*event
	first   int
	floor   int64
	changed chan struct{}
	// bytes is what the events hold beside the newest objects.
	bytes int64
}

// size is the memory of an event: the previous state of the object, which the
// collection no longer holds, and a deleted one.
func (e *event) size() (n int64) {
	if e.before != nil {
		n += int64(len(e.before.raw))
	}
	if e.kind == watch.Deleted {
		n += int64(len(e.after.raw))
	}
	return n
}

func newHistory() history { return history{changed: make(chan struct{})} }

// end is the position after the newest event.
func (h *history) end() int { return h.first + len(h.events) }

func (h *history) append(e *event) {
	h.events = append(h.events, e)
	h.bytes += e.size()
	close(h.changed)
	h.changed = make(chan struct{})
}

// after returns the events from a position on; false if some are forgotten.
func (h *history) after(position int) ([]*event, bool) {
	if position < h.first {
		return nil, false
	}
	return slices.Clip(h.events[position-h.first:]), true
}

// since returns the position of the first event later than a version; false if
// it is not known which that is.
func (h *history) since(version int64) (int, bool) {
	if version < h.floor {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(h.events, version+1, func(e *event, v int64) int { return int(e.version - v) })
	return h.first + i, true
}

// trim forgets events that are too many or too old. The newest event stays, unless
// it is too old, for watchers that have not read it yet.
func (h *history) trim(size int, bytes int64, before time.Time) {
	n := max(0, len(h.events)-size)
	left := h.bytes
	for _, e := range h.events[:n] {
		left -= e.size()
	}
	for n < len(h.events) && (h.events[n].at.Before(before) || left > bytes && n < len(h.events)-1) {
		left -= h.events[n].size()
		n++
	}
	h.bytes = left
	h.forget(n)
}

// compact forgets events up to a version, for new requests. Running watches
// continue: a real server keeps in its own memory what etcd has compacted. The
// events are removed when there are too many of them.
func (h *history) compact(version int64) { h.floor = max(h.floor, version) }

// reset removes all events and starts again at a version, which may be an older one.
// Watchers lose their place, and are woken to see that.
func (h *history) reset(version int64) {
	h.first = h.end() + 1
	h.events, h.bytes = nil, 0
	h.floor = version
	close(h.changed)
	h.changed = make(chan struct{})
}

// forget drops the n oldest events, whose bytes are counted off already. Growing moves the others to a new array
// sooner or later; if they are few they move at once, so that what was dropped
// can be collected.
func (h *history) forget(n int) {
	if n == 0 {
		return
	}
	h.floor = max(h.floor, h.events[n-1].version)
	h.first += n
	h.events = h.events[n:]
	if n > len(h.events) {
		h.events = slices.Clone(h.events)
	}
}
