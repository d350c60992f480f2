package apiserver

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// history is what happened to a collection recently, shared by all its watchers.
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
	events []*Event
	first  int
	floor  int64
	// watchers are woken by a change. Each channel has room for one.
	watchers map[chan<- struct{}]struct{}
	// bytes is what the events hold beside the newest objects.
	bytes int64
}

// size is the memory of an event: the previous state of the object, which the
// collection no longer holds, and a deleted one.
func (e *Event) size() (n int64) {
	if e.Old != nil {
		n += int64(len(e.Old.raw))
	}
	if e.Type == watch.Deleted {
		n += int64(len(e.Object.raw))
	}
	return n
}

func newHistory() history { return history{watchers: map[chan<- struct{}]struct{}{}} }

// end is the position after the newest event.
func (h *history) end() int { return h.first + len(h.events) }

func (h *history) append(e *Event) {
	h.events = append(h.events, e)
	h.bytes += e.size()
	h.wake()
}

// wake wakes all who watch.
func (h *history) wake() {
	for w := range h.watchers {
		signal(w)
	}
}

// signal sends to a channel that has room for one, unless it has one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// after returns the events from a position on; false if some are forgotten.
func (h *history) after(position int) ([]*Event, bool) {
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
	i, _ := slices.BinarySearchFunc(h.events, version+1, func(e *Event, v int64) int { return int(e.Version - v) })
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
	for n < len(h.events) && (h.events[n].Heard.Before(before) || left > bytes && n < len(h.events)-1) {
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
	h.wake()
}

// forget drops the n oldest events, whose bytes are counted off already. Growing moves the others to a new array
// sooner or later; if they are few they move at once, so that what was dropped
// can be collected.
func (h *history) forget(n int) {
	if n == 0 {
		return
	}
	h.floor = max(h.floor, h.events[n-1].Version)
	h.first += n
	h.events = h.events[n:]
	if n > len(h.events) {
		h.events = slices.Clone(h.events)
	}
}
