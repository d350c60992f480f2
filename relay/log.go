package relay

import (
	"slices"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/apiserver"
)

// eventLog holds the latest events of a resource, for watches from older versions and for
// lists at them.
//
// Every watch is a place in it, so a client that reads slowly costs nothing else, and a
// client whose place has been dropped has to come again.
//
// events[0] has the place first. Readers keep slices of events, which is only appended to
// or replaced. It has all changes after the version floor; versions of events grow.
type eventLog struct {
	events []*apiserver.Event
	first  int
	floor  int64
	bytes  int64
}

// end is the place after the newest event.
func (l *eventLog) end() int { return l.first + len(l.events) }

// append adds an event. Versions must grow for the search, also if the origin sent an older
// one after a newer one of another object.
func (l *eventLog) append(e *apiserver.Event) {
	if n := len(l.events); n > 0 {
		e.Version = max(e.Version, l.events[n-1].Version)
	}
	l.events = append(l.events, e)
	l.bytes += size(e)
}

// after returns the events from a place on; false if some were dropped.
func (l *eventLog) after(place int) ([]*apiserver.Event, bool) {
	if place < l.first {
		return nil, false
	}
	return slices.Clip(l.events[place-l.first:]), true
}

// since returns the place of the first event after a version; false if that is not known:
// it was dropped, or the version lies in a gap.
func (l *eventLog) since(version int64) (int, bool) {
	if version < l.floor {
		return 0, false
	}
	i := sort.Search(len(l.events), func(i int) bool { return l.events[i].Version > version })
	if i < len(l.events) && l.events[i].Gap != nil && l.events[i].Gap.From < version {
		return 0, false
	}
	return l.first + i, true
}

// undo returns what objects were before some events.
func undo(events []*apiserver.Event) priorObjects {
	before := priorObjects{}
	for _, e := range events {
		before.note(e)
	}
	return before
}

// priorObjects is what objects were before some events, by key; nil if they were not there.
type priorObjects map[string]*apiserver.Object

// note takes the next event. The first one of an object counts.
func (u priorObjects) note(e *apiserver.Event) {
	if e.Gap == nil {
		u.add(e.Object.Key(), e.Old)
		return
	}
	for _, c := range e.Gap.Changes {
		u.add(gapKey(c), c.Old)
	}
}

func (u priorObjects) add(key string, old *apiserver.Object) {
	if _, ok := u[key]; !ok {
		u[key] = old
	}
}

// reset drops everything. What follows is after the version. Places before are gone.
func (l *eventLog) reset(version int64) {
	*l = eventLog{first: l.end() + 1, floor: version}
}

// trim drops the oldest events while they hold too many bytes or are too old. The newest
// one stays, for watches that have not read it yet, and so do those from a place on.
func (l *eventLog) trim(bytes int64, oldest time.Time, limit int) {
	n := 0
	for n < len(l.events)-1 && l.first+n < limit && (l.bytes > bytes || l.events[n].Heard.Before(oldest)) {
		l.bytes -= size(l.events[n])
		n++
	}
	if n == 0 {
		return
	}
	l.floor = max(l.floor, l.events[n-1].Version)
	l.first += n
	l.events = l.events[n:]
	if n > len(l.events) {
		l.events = slices.Clone(l.events) // so that the dropped ones can be collected
	}
}

// eventOverhead is about what an event takes beside the objects.
const eventOverhead = 200

// size is what an event holds beside the present objects: the states before it, and
// deleted ones.
func size(e *apiserver.Event) int64 {
	n := eventOverhead
	if e.Old != nil {
		n += len(e.Old.Bytes())
	}
	if e.Type == watch.Deleted {
		n += len(e.Object.Bytes())
	}
	if e.Gap != nil {
		for _, c := range e.Gap.Changes {
			n += eventOverhead
			if c.Old != nil {
				n += len(c.Old.Bytes())
			}
		}
	}
	return int64(n)
}

func gapKey(c *apiserver.GapChange) string {
	if c.Old != nil {
		return c.Old.Key()
	}
	return c.New.Key()
}
