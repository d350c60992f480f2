package relay

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// Object is an object as a relay holds it: the bytes that the origin sent, and the fields
// that selectors and lists need.
type Object = *apiserver.Object

// state is one relayed resource: the objects at the version that the copy has reached,
// and the log of how they came there. Versions are the origin's.
//
// It is a [tarn.Sink] of the copy, which says in which ranges of versions states were
// missed, and an [apiserver.State]. Why not the store of the copy: a store is not
// notified of gaps.
//
// Everything is guarded by mu. The version and the content move together, so that a
// listing and the place in the log after it fit.
type state struct {
	name   string
	bytes  int64
	age    time.Duration
	latest func(ctx context.Context, s *state, watch bool) error
	// prove moves the version on if the origin shows that nothing has happened; nil if it
	// cannot be asked.
	prove   func(ctx context.Context, version int64)
	maxWait time.Duration

	mu      sync.RWMutex
	content content
	version int64
	// copyVersion is the version that the copy itself has. The version is a later one if a proof
	// has shown that nothing happened since.
	copyVersion int64
	epoch       string
	log         eventLog
	// synced says that the content is one of the origin.
	synced bool
	// rewinds counts how often the log was dropped; watches from before end.
	rewinds  int
	watchers watchers
	// moved is closed when the version changes; nil while nobody waits.
	moved chan struct{}
	// gaps counts the gaps upstream, and overruns the watches that were so slow that the
	// log had dropped what they were to read next.
	gaps     int64
	overruns atomic.Int64
	// ended says that watches are to end.
	ended bool
	// complete is that of the position, heard the time of the last contact with the origin.
	complete bool
	heard    time.Time

	// journal is nil without a directory. Everything before the place saved, and before the
	// version savedVersion, is in it.
	journal      *journal
	journalErr   error
	logger       *slog.Logger
	saved        int
	savedVersion int64
	savedAt      time.Time
}

var (
	_ tarn.Sink[Object] = (*state)(nil)
	_ apiserver.State   = (*state)(nil)
)

// Policy asks for every state, at once.
func (s *state) Policy() tarn.SinkPolicy[Object] {
	return tarn.SinkPolicy[Object]{
		Name: "relay", EveryState: true,
		SizeOf: func(c tarn.Change[Object]) int {
			if c.Object == nil {
				return eventOverhead
			}
			return eventOverhead + len(c.Object.Bytes())
		},
	}
}

// Open says that nothing is held: the first commit brings the whole content.
func (s *state) Open(context.Context, func() error) (tarn.Kept, error) { return tarn.Kept{}, nil }

// Close leaves the content as it is.
func (s *state) Close() {}

// Commit takes the changes that the copy has taken.
func (s *state) Commit(_ context.Context, b tarn.Batch[Object]) error {
	at, err := positionOf(b)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if at.version == 0 {
		return nil // nothing has been read yet
	}
	begun := s.commit(b, at)
	s.persist(b.LastContact, begun)
	s.trim(b.LastContact)
	return nil
}

// commit returns whether the log was dropped.
func (s *state) commit(b tarn.Batch[Object], at position) (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun = !s.synced || s.rewound(b, at); begun {
		s.forgetJournal()
	}
	switch {
	case begun:
		s.take(b)
		s.log.reset(at.version)
		s.synced, s.version = true, at.version
		s.rewinds++
		s.watchers.wakeAll(s.log.end())
	default:
		for _, part := range divide(b, max(s.version, at.version)) {
			s.apply(part, b.LastContact)
		}
		s.version = max(s.version, at.version)
	}
	s.epoch, s.complete, s.heard, s.copyVersion = at.epoch, at.complete, b.LastContact, at.version
	for _, c := range b.Changes {
		s.copyVersion = max(s.copyVersion, versionOf(c.Version))
	}
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
	return begun
}

// trim drops what is too old, or too much, and on disk if there is one.
func (s *state) trim(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.log.end()
	if s.journal != nil {
		limit = s.saved
		s.journal.past.age()
	}
	s.log.trim(s.bytes, now.Add(-s.age), limit)
}

// position is where the copy is.
type position struct {
	version  int64
	epoch    string
	complete bool
}

func positionOf(b tarn.Batch[Object]) (position, error) {
	if len(b.Positions) != 1 || b.Positions[0].Version == "" {
		return position{}, nil
	}
	p := b.Positions[0]
	version, err := strconv.ParseInt(string(p.Version), 10, 64)
	if err != nil {
		return position{}, fmt.Errorf("the version %q of the origin is not a number, so clients could not be served by it", p.Version)
	}
	return position{version, p.Epoch, p.Complete}, nil
}

// rewound says that earlier versions cannot be compared with the present ones. A repair,
// which brings other content under the same version, counts as one: a client that has the
// version would never be notified. So does a change in a range of versions for which a proof
// has shown that nothing changed: the origin has gone back to before the proof.
func (s *state) rewound(b tarn.Batch[Object], at position) bool {
	if at.epoch != s.epoch {
		return true
	}
	for _, g := range b.Gaps {
		if g.Cause == tarn.GapRewound {
			return true
		}
	}
	for _, c := range b.Changes {
		if c.Rewound || s.disproves(c, at) {
			return true
		}
	}
	return false
}

// disproves says that a change is in a range of versions for which a proof has shown that
// nothing changed.
func (s *state) disproves(c tarn.Change[Object], at position) bool {
	if s.version <= s.copyVersion {
		return false
	}
	v := versionOf(c.Version)
	return v > s.copyVersion && v <= s.version || c.Missed && at.version <= s.version
}

// take changes the content, and not the log.
func (s *state) take(b tarn.Batch[Object]) {
	if b.Whole {
		s.content = content{}
	}
	for _, c := range b.Changes {
		if c.Type == tarn.Delete {
			s.content.set(string(c.Key), nil)
		} else {
			s.content.set(string(c.Key), c.Object)
		}
	}
}

// confirm records that nothing happened between two versions, which another watch
// has proved. It does nothing if the copy has moved meanwhile.
func (s *state) confirm(from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != from || to <= from || !s.synced {
		return
	}
	s.version = to
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}

// disprove records that the origin is at an older version than a proof has shown: it has gone
// back. If it has gone back further than the version that the copy itself has, the copy
// notices that by itself.
func (s *state) disprove(version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	disproved := func() bool { return version < s.version && version >= s.copyVersion }
	if !disproved() {
		return
	}
	if s.forgetJournal(); !disproved() {
		return // the copy itself has moved meanwhile
	}
	s.version = s.copyVersion
	s.log.reset(s.version)
	s.rewinds++
	s.watchers.wakeAll(s.log.end())
}

// forgetJournal empties the journal. The lock is held, but not meanwhile: that may wait for the
// disk.
func (s *state) forgetJournal() {
	j := s.journal
	if j == nil {
		return
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	j.forget()
}

// unsync ends all watches, and has reads wait for the next commit: the content is not one of
// the origin. It is kept, because that commit says what is different.
func (s *state) unsync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = false
	s.log.reset(s.version)
	s.rewinds++
	s.watchers.wakeAll(s.log.end())
}

// end ends all watches.
func (s *state) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.watchers.wakeAll(s.log.end())
}

// stats is what the state holds.
type stats struct {
	objects, events, watches int
	logBytes, version, gaps  int64
	// logSince is when the oldest event of the log was received; zero without events.
	logSince time.Time
	synced   bool
}

func (s *state) stats() stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := stats{
		objects: len(s.content.objects), events: len(s.log.events), watches: s.watchers.count,
		logBytes: s.log.bytes, version: s.version, gaps: s.gaps, synced: s.synced,
	}
	if all.events > 0 {
		all.logSince = s.log.events[0].Heard
	}
	return all
}

// disk is how many bytes are on disk, and why nothing can be written. It waits for a write
// that is under way, so it is called without the lock.
func (s *state) disk() (bytes int64, err error) {
	s.mu.RLock()
	j, err := s.journal, s.journalErr
	s.mu.RUnlock()
	if j == nil {
		return 0, err
	}
	return j.total(), j.problem()
}

func versionString(v int64) string { return strconv.FormatInt(v, 10) }
