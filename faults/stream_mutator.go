package faults

import (
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
)

const (
	// holdFor is how long an event waits for another one to change places with.
	holdFor = time.Second
	// maxRecent is how many events can come again.
	maxRecent = 32
)

// mutator applies the faults of single events to a stream: it drops, corrupts,
// delays, repeats and reorders them, and puts the result into the outbox.
type mutator[T any] struct {
	source *source[T]
	out    *outbox[T]

	corrupter                       *corrupter[T]
	undecodable                     *injector
	dropBookmark, dropEnd, endless  *injector
	duplicate, replay, reorder, lag *injector

	// held waits to change places with the next event.
	held *heldEvent[T]
	// last is the end of the initial events while it is held back; after has the
	// events that followed it.
	last  *tarn.Event[T]
	after []tarn.Event[T]
	// recent holds the latest changes in the order of delivery, as they were before
	// any fault.
	recent []tarn.Event[T]
	// due is when the latest event is to be delivered: no later event is delivered
	// before that.
	due time.Time
}

// mutated is an event with its faults, and the original.
type mutated[T any] struct {
	event, original tarn.Event[T]
	key             tarn.Key
}

type heldEvent[T any] struct {
	mutated[T]
	until time.Time
	// nth is the number of the draw that held it back.
	nth int
}

func newMutator[T any](s *source[T], r *request, out *outbox[T]) *mutator[T] {
	return &mutator[T]{
		source: s, out: out, corrupter: newCorrupter(s, r), undecodable: r.injector(Undecodable),
		dropBookmark: r.injector(DropBookmark), dropEnd: r.injector(DropEnd), endless: r.injector(Endless),
		duplicate: r.injector(Duplicate), replay: r.injector(Replay), reorder: r.injector(Reorder), lag: r.injector(Lag),
	}
}

// add takes the next event.
func (m *mutator[T]) add(e tarn.Event[T]) {
	switch {
	case m.last != nil:
		m.after = append(m.after, e)
	case e.Type != tarn.EventBookmark:
		m.change(e)
	case e.InitialEnd:
		m.initialEnd(e)
	default:
		m.releaseHeld()
		if !m.dropBookmark.draw() || !m.dropBookmark.inject(string(e.Version)) {
			m.deliver(e, false)
		}
	}
}

func (m *mutator[T]) initialEnd(e tarn.Event[T]) {
	m.releaseHeld()
	drop, keep := m.dropEnd.draw(), m.endless.draw()
	switch {
	case drop && m.dropEnd.inject(string(e.Version)):
	case keep && m.endless.inject(fmt.Sprintf("%d events again and again", len(m.recent))):
		m.last = &e
	default:
		m.deliver(e, false)
	}
}

// endInitial ends the initial events after all.
func (m *mutator[T]) endInitial() {
	m.deliver(*m.last, false)
	after := m.after
	m.last, m.after = nil, nil
	for _, e := range after {
		m.add(e)
	}
}

// change handles events that are not bookmarks. Every kind is drawn for each of
// them, whatever is injected: the timing of events must not change what is drawn
// for later ones.
func (m *mutator[T]) change(e tarn.Event[T]) {
	g := m.corrupt(e)
	if wait := m.lag.pause(); wait > 0 {
		m.due = later(m.due, time.Now().Add(wait))
	}
	swap := m.reorder.draw()
	twice := m.duplicate.draw()
	times := 0
	if m.replay.draw() {
		times = 1 + m.replay.IntN(maxRecent)
	}

	if m.swapWithHeld(g) {
		return
	}
	m.releaseHeld()
	if swap && g.key != "" {
		m.held = &heldEvent[T]{mutated: g, until: time.Now().Add(holdFor), nth: m.reorder.drawn}
		return
	}
	m.deliverChange(g, false)
	if twice && m.duplicate.inject(string(g.key)) {
		m.deliver(g.event, false)
	}
	if times = min(times, len(m.recent)); times > 0 && m.replay.inject(fmt.Sprintf("%d events", times)) {
		m.repeatLast(times)
	}
}

// corrupt draws and applies faults of the event's content.
func (m *mutator[T]) corrupt(e tarn.Event[T]) mutated[T] {
	g := mutated[T]{event: e, original: e}
	if e.Bad.Err != nil || e.Type == tarn.EventUndecodable {
		return g
	}
	g.key = m.source.key(e.Object)
	lost, objectFaults := m.undecodable.draw(), m.corrupter.draw()
	if lost && m.undecodable.inject(string(g.key)) {
		g.event = tarn.Event[T]{Type: tarn.EventUndecodable, Bad: tarn.BadObject{Err: injected(tarn.ErrUndecodable)}}
		return g
	}
	g.event.Object, g.event.Bad = m.corrupter.object(objectFaults, e.Object, g.key)
	return g
}

// swapWithHeld delivers g before the event that is held, if there is one and it has
// another key.
func (m *mutator[T]) swapWithHeld(g mutated[T]) bool {
	h := m.held
	if h == nil || g.key == "" || g.key == h.key || !m.reorder.injectNth(h.nth, fmt.Sprintf("%s after %s", h.key, g.key)) {
		return false
	}
	m.held = nil
	m.deliverChange(g, true)
	m.deliverChange(h.mutated, false)
	return true
}

// releaseHeld delivers the held event, if there is one.
func (m *mutator[T]) releaseHeld() bool {
	if m.held == nil {
		return false
	}
	g := m.held.mutated
	m.held = nil
	m.deliverChange(g, false)
	return true
}

// releaseOverdue delivers the held event if it has waited long enough.
func (m *mutator[T]) releaseOverdue() {
	if m.held != nil && !time.Now().Before(m.held.until) {
		m.releaseHeld()
	}
}

// deliverChange delivers a change and remembers it.
func (m *mutator[T]) deliverChange(g mutated[T], notLast bool) {
	m.deliver(g.event, notLast)
	if len(m.recent) == maxRecent {
		m.recent = append(m.recent[:0], m.recent[1:]...)
	}
	m.recent = append(m.recent, g.original)
}

// repeatLast delivers the latest changes once more. Since it repeats all of them
// up to the last one, every key ends in the state that it had.
func (m *mutator[T]) repeatLast(times int) {
	for _, e := range m.recent[len(m.recent)-times:] {
		m.deliver(e, false)
	}
}

func (m *mutator[T]) deliver(e tarn.Event[T], notLast bool) {
	m.out.put(queuedEvent[T]{event: e, due: m.due, notLast: notLast})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
