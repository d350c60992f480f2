package faults

import (
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
)

const (
	// holdFor is how long an event waits for another one to change places with.
	holdFor = time.Second
	// remembered is how many events can come again.
	remembered = 32
)

// mill makes of each event of a stream what becomes of it: nothing, another one,
// or several.
type mill[T any] struct {
	source *source[T]
	out    *outbox[T]

	spoiler                         *spoiler[T]
	undecodable                     *dice
	dropBookmark, dropEnd, endless  *dice
	duplicate, replay, reorder, lag *dice

	// held waits to change places with the next event.
	held *holding[T]
	// last is the end of the initial events while it is held back, after it the
	// events that followed.
	last  *tarn.Event[T]
	after []tarn.Event[T]
	// memory holds the latest changes in the order in which they were handed
	// out, as they were before anything was done to them.
	memory []tarn.Event[T]
	// due is when the latest event was due: none overtakes it.
	due time.Time
}

// ground is an event that has been through the mill, and what it was before.
type ground[T any] struct {
	event, original tarn.Event[T]
	key             tarn.Key
}

type holding[T any] struct {
	ground[T]
	until time.Time
	// nth is which throw of the dice it was.
	nth int
}

func newMill[T any](s *source[T], r *request, out *outbox[T]) *mill[T] {
	return &mill[T]{
		source: s, out: out, spoiler: newSpoiler(s, r), undecodable: r.dice(Undecodable),
		dropBookmark: r.dice(DropBookmark), dropEnd: r.dice(DropEnd), endless: r.dice(Endless),
		duplicate: r.dice(Duplicate), replay: r.dice(Replay), reorder: r.dice(Reorder), lag: r.dice(Lag),
	}
}

// grind takes the next event.
func (m *mill[T]) grind(e tarn.Event[T]) {
	switch {
	case m.last != nil:
		m.after = append(m.after, e)
	case e.Type != tarn.EventBookmark:
		m.change(e)
	case e.InitialEnd:
		m.initialEnd(e)
	default:
		m.letGo()
		if !m.dropBookmark.comesUp() || !m.dropBookmark.happens(string(e.Version)) {
			m.deliver(e, false)
		}
	}
}

func (m *mill[T]) initialEnd(e tarn.Event[T]) {
	m.letGo()
	drop, keep := m.dropEnd.comesUp(), m.endless.comesUp()
	switch {
	case drop && m.dropEnd.happens(string(e.Version)):
	case keep && m.endless.happens(fmt.Sprintf("%d events again and again", len(m.memory))):
		m.last = &e
	default:
		m.deliver(e, false)
	}
}

// finish ends the initial events after all.
func (m *mill[T]) finish() {
	m.deliver(*m.last, false)
	after := m.after
	m.last, m.after = nil, nil
	for _, e := range after {
		m.grind(e)
	}
}

// change is for every event that is not a bookmark. All dice are thrown for each
// of them, whatever comes of it: how fast the events follow each other must not
// change what is decided about the later ones.
func (m *mill[T]) change(e tarn.Event[T]) {
	g := m.spoil(e)
	if wait := m.lag.pause(); wait > 0 {
		m.due = later(m.due, time.Now().Add(wait))
	}
	swap := m.reorder.comesUp()
	twice := m.duplicate.comesUp()
	times := 0
	if m.replay.comesUp() {
		times = 1 + m.replay.IntN(remembered)
	}

	if m.changePlaces(g) {
		return
	}
	m.letGo()
	if swap && g.key != "" {
		m.held = &holding[T]{ground: g, until: time.Now().Add(holdFor), nth: m.reorder.thrown}
		return
	}
	m.hand(g, false)
	if twice && m.duplicate.happens(string(g.key)) {
		m.deliver(g.event, false)
	}
	if times = min(times, len(m.memory)); times > 0 && m.replay.happens(fmt.Sprintf("%d events", times)) {
		m.again(times)
	}
}

// spoil decides about the event's content.
func (m *mill[T]) spoil(e tarn.Event[T]) ground[T] {
	g := ground[T]{event: e, original: e}
	if e.Bad.Err != nil || e.Type == tarn.EventUndecodable {
		return g
	}
	g.key = m.source.key(e.Object)
	lost, verdict := m.undecodable.comesUp(), m.spoiler.judge()
	if lost && m.undecodable.happens(string(g.key)) {
		g.event = tarn.Event[T]{Type: tarn.EventUndecodable, Bad: tarn.BadObject{Err: injected(tarn.ErrUndecodable)}}
		return g
	}
	g.event.Object, g.event.Bad = m.spoiler.object(verdict, e.Object, g.key)
	return g
}

// changePlaces delivers g before the event that is held, if there is one and it has
// another key.
func (m *mill[T]) changePlaces(g ground[T]) bool {
	h := m.held
	if h == nil || g.key == "" || g.key == h.key || !m.reorder.happensAs(h.nth, fmt.Sprintf("%s after %s", h.key, g.key)) {
		return false
	}
	m.held = nil
	m.hand(g, true)
	m.hand(h.ground, false)
	return true
}

// letGo hands out what is held, if anything.
func (m *mill[T]) letGo() bool {
	if m.held == nil {
		return false
	}
	g := m.held.ground
	m.held = nil
	m.hand(g, false)
	return true
}

// letGoLate does so if it has waited long enough.
func (m *mill[T]) letGoLate() {
	if m.held != nil && !time.Now().Before(m.held.until) {
		m.letGo()
	}
}

// hand gives out a change and remembers it.
func (m *mill[T]) hand(g ground[T], tied bool) {
	m.deliver(g.event, tied)
	if len(m.memory) == remembered {
		m.memory = append(m.memory[:0], m.memory[1:]...)
	}
	m.memory = append(m.memory, g.original)
}

// again gives out the latest changes once more. Since it gives all of them up to
// the last one, every key ends where it was.
func (m *mill[T]) again(times int) {
	for _, e := range m.memory[len(m.memory)-times:] {
		m.deliver(e, false)
	}
}

func (m *mill[T]) deliver(e tarn.Event[T], tied bool) {
	m.out.put(parcel[T]{event: e, due: m.due, tied: tied})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
