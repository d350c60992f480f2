package tarn

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// State is what a reflector is doing.
type State uint8

const (
	// StateIdle: not started.
	StateIdle State = iota
	// StateListing: reading the whole collection.
	StateListing
	// StateWatching: following changes.
	StateWatching
	// StateWaiting: pausing after a failure; Health.Err says which.
	StateWaiting
	// StateStopped: ended for good.
	StateStopped
)

var stateNames = [...]string{"idle", "listing", "watching", "waiting", "stopped"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Health is what a replica knows of itself at one moment.
type Health struct {
	Name  string
	State State
	// Synced says that the whole collection was taken at least once.
	Synced bool
	// FromDisk says that the content was loaded from disk and has not caught up
	// with the source yet; Age is then how old it is.
	FromDisk bool
	// Disk is how far the copy on disk has followed, be it the store itself or a sink
	// that restarts load from; nil if there is none.
	Disk *SinkHealth
	// Sinks is how far each sink has followed, in the order of [Options.Sinks].
	Sinks []SinkHealth
	// Version is the state reached.
	Version Version
	// LastContact is when the source was last heard: an event, a bookmark, a list.
	LastContact time.Time
	// Age is the time since then: the content may lag by that much.
	Age time.Duration

	// WatchSince is since when the present watch is followed, zero while there is
	// none; WatchAge is the time since then. A watch that is hours old is odd:
	// servers end them after minutes.
	WatchSince time.Time
	WatchAge   time.Duration

	// Err is why the replica is not following its source; nil while it is.
	Err error
	// ErrSince is when that began, Failures how often it was tried since.
	ErrSince time.Time
	Failures int

	// Bad names objects that could not be taken, at most a hundred; for each the
	// content shows the last good state, or nothing. BadCount counts all, also
	// those that could not even be named.
	Bad      []BadObject
	BadCount int

	// Damage is what is known of objects that a program wrote to by mistake.
	Damage DamageHealth

	// Lists counts whole reads by cause; Watches the streams opened; Events what
	// they brought; Rewinds how often the source went back in time; AllFailures
	// every attempt that failed, where Failures begins anew after each recovery.
	Lists       map[string]int64
	Watches     int64
	Events      int64
	Rewinds     int64
	AllFailures int64
	// WatchListGivenUp says that the source failed to stream its collection so
	// often that it is listed instead.
	WatchListGivenUp bool

	// Sections has the Health of each, where a replica has several.
	Sections []Health
}

// Fresh says that the replica is following its source and heard of it within
// the given time.
func (h Health) Fresh(within time.Duration) bool {
	return h.Synced && h.Err == nil && h.State != StateStopped && h.Age <= within
}

func (h Health) String() string {
	s := fmt.Sprintf("%s: %s", h.Name, h.State)
	if h.FromDisk {
		s += fmt.Sprintf(", from disk, %s old, at version %s", h.Age.Round(time.Second), h.Version)
	} else if h.Synced {
		if h.Version != "" {
			s += " at version " + string(h.Version)
		}
		s += fmt.Sprintf(", %s old", h.Age.Round(time.Second))
	} else {
		s += ", not synced"
	}
	if h.BadCount > 0 {
		s += fmt.Sprintf(", %d bad objects", h.BadCount)
	}
	if h.Damage.Found > 0 {
		s += fmt.Sprintf(", %d objects written to by mistake (%d to be read again)", h.Damage.Found, h.Damage.Waiting)
	}
	if h.Disk != nil && h.Disk.Err != nil {
		s += ", " + h.Disk.String()
	}
	if h.Err != nil {
		s += fmt.Sprintf(", failing since %s: %v", h.ErrSince.Format(time.TimeOnly), h.Err)
	}
	return s
}

// monitor collects Health. The loop writes it, anyone reads it.
type monitor struct {
	mu     sync.Mutex
	clock  Clock
	h      Health
	synced chan struct{}
	ended  chan struct{}
	bad    quarantine
	damage damages
}

func newMonitor(name string, clock Clock) *monitor {
	return &monitor{
		clock:  clock,
		h:      Health{Name: name, Lists: map[string]int64{}},
		synced: make(chan struct{}),
		ended:  make(chan struct{}),
	}
}

func (m *monitor) update(f func(h *Health)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.h)
}

func (m *monitor) enter(s State) { m.update(func(h *Health) { h.State = s }) }

// heard notes a word from the source. It ends what was wrong, except before the
// first sync: until then the cause must stay readable for those who wait.
func (m *monitor) heard(v Version, events int) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.h.LastContact = now
	m.h.Version = v
	m.h.Events += int64(events)
	m.recovered()
}

// opened notes a new stream.
func (m *monitor) opened() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.h.Watches++
	m.recovered()
}

// follows notes since when a watch is followed, left that it has ended.
func (m *monitor) follows(since time.Time) {
	m.update(func(h *Health) { h.State, h.WatchSince = StateWatching, since })
}

func (m *monitor) left() { m.update(func(h *Health) { h.WatchSince = time.Time{} }) }

func (m *monitor) recovered() {
	if m.h.Synced {
		m.h.Err = nil
		m.h.Failures = 0
	}
}

// listed notes that the whole collection was taken at a version.
func (m *monitor) listed(cause string, v Version) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.h.Lists[cause]++
	m.h.LastContact = now
	m.h.Version = v
	m.nowSynced()
	m.recovered()
}

// nowSynced notes that the content is the source's.
func (m *monitor) nowSynced() {
	m.h.FromDisk = false
	if !m.h.Synced {
		m.h.Synced = true
		close(m.synced)
	}
}

func (m *monitor) failed(err error) {
	now := m.clock.Now()
	m.update(func(h *Health) {
		if h.Err == nil {
			h.ErrSince = now
		}
		h.Err = err
		h.Failures++
		h.AllFailures++
	})
}

// stopped notes the end; it may come more than once.
func (m *monitor) stopped() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.h.State != StateStopped {
		m.h.State = StateStopped
		close(m.ended)
	}
}

func (m *monitor) health() Health {
	m.mu.Lock()
	now := m.clock.Now() // not before: the last word may come while the lock is waited for
	h := m.h
	h.Lists = maps.Clone(m.h.Lists)
	m.mu.Unlock()
	if !h.LastContact.IsZero() {
		h.Age = max(0, now.Sub(h.LastContact)) // clocks are set back
	}
	if !h.WatchSince.IsZero() {
		h.WatchAge = max(0, now.Sub(h.WatchSince))
	}
	h.Bad, h.BadCount = m.bad.list()
	h.Damage = m.damage.tell()
	return h
}
