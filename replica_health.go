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

// Health is the state of a replica at one moment.
type Health struct {
	Name  string
	State State
	// Synced says that the store has had the whole collection at least once.
	Synced bool
	// FromDisk says that the content was loaded from disk and has not caught up
	// with the source yet; Age is then its age.
	FromDisk bool
	// Disk is the state of the copy on disk: the store itself, or the sink from which a
	// restart loads; nil if there is no such copy.
	Disk *SinkHealth
	// Sinks has the state of each sink, in the order of [Options.Sinks].
	Sinks []SinkHealth
	// Version is the one reached.
	Version Version
	// LastContact is the time of the last event, bookmark or list from the source.
	LastContact time.Time
	// Age is the time since then: the content may lag by that much.
	Age time.Duration

	// WatchSince is when the current watch began, zero while there is none; WatchAge
	// is the time since then. A watch that is hours old is unusual: servers end them
	// after minutes.
	WatchSince time.Time
	WatchAge   time.Duration

	// Err is why the replica is not following its source; nil while it is.
	Err error
	// ErrSince is when that began, Failures the number of failures since.
	ErrSince time.Time
	Failures int

	// Bad names objects that could not be taken, at most a hundred; for each the
	// content shows the last good state, or nothing. BadCount counts all, including
	// those without a readable key.
	Bad      []BadObject
	BadCount int

	// Damage describes objects that a program wrote to by mistake.
	Damage DamageHealth

	// Lists counts whole reads by cause, Watches the opened streams, Events their
	// events, Rewinds how often the source went back in time. AllFailures counts
	// every failure, where Failures restarts at 0 after each recovery. Sections that
	// were removed are counted too.
	Lists       map[string]int64
	Watches     int64
	Events      int64
	Rewinds     int64
	AllFailures int64
	// WatchListGivenUp says that the source is listed because it failed to stream
	// its collection.
	WatchListGivenUp bool

	// Shard is the part of the collection that the copy has; nil if it has all.
	Shard *ShardHealth

	// Section is the name of the section whose Health it is, empty for that of a replica.
	Section string
	// Sections has the Health of each section, if there are several.
	Sections []Health
}

// ShardHealth describes the part of a collection that a copy has.
type ShardHealth struct {
	// Name describes the part, and Share is how large it is, from 0 to 1.
	Name  string
	Share float64
	// ByServer says that the server sends only this part, and has confirmed it. Otherwise
	// it sends all objects, and the copy drops those of other shards.
	ByServer bool
	// Dropped counts the objects and events of other shards that the copy dropped.
	Dropped int64
}

func (s ShardHealth) String() string {
	if s.ByServer {
		return s.Name + ", selected by the server"
	}
	return fmt.Sprintf("%s, selected here, %d objects of others dropped", s.Name, s.Dropped)
}

// Fresh reports whether the replica is following its source and had contact with it
// within the given time.
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
	if h.Shard != nil {
		s += ", " + h.Shard.String()
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
	damage damageQueue
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

// contacted records contact with the source. It clears Err, except before the first
// sync: until then WaitSynced returns it.
func (m *monitor) contacted(v Version, events int) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.h.LastContact = now
	m.h.Version = v
	m.h.Events += int64(events)
	m.recovered()
}

// opened counts a new stream.
func (m *monitor) opened() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.h.Watches++
	m.recovered()
}

// watchStarted records the start of a watch, watchEnded its end.
func (m *monitor) watchStarted(since time.Time) {
	m.update(func(h *Health) { h.State, h.WatchSince = StateWatching, since })
}

func (m *monitor) watchEnded() { m.update(func(h *Health) { h.WatchSince = time.Time{} }) }

func (m *monitor) recovered() {
	if m.h.Synced {
		m.h.Err = nil
		m.h.Failures = 0
	}
}

// listed records that the whole collection was written at a version.
func (m *monitor) listed(cause string, v Version) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.h.Lists[cause]++
	m.h.LastContact = now
	m.h.Version = v
	m.setSynced()
	m.recovered()
}

// setSynced records that the content equals the source's.
func (m *monitor) setSynced() {
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

// stopped records the end; it may be called more than once.
func (m *monitor) stopped() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.h.State != StateStopped {
		m.h.State = StateStopped
		close(m.ended)
	}
}

// status is the part of Health that callers ask for all the time.
func (m *monitor) status() (State, Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.h.State, m.h.Version
}

func (m *monitor) health() Health {
	m.mu.Lock()
	now := m.clock.Now() // under the lock, so that it is not before LastContact
	h := m.h
	h.Lists = maps.Clone(m.h.Lists)
	m.mu.Unlock()
	if !h.LastContact.IsZero() {
		h.Age = max(0, now.Sub(h.LastContact)) // a clock may be set back
	}
	if !h.WatchSince.IsZero() {
		h.WatchAge = max(0, now.Sub(h.WatchSince))
	}
	h.Bad, h.BadCount = m.bad.list()
	h.Damage = m.damage.summary()
	return h
}
