package relay

import (
	"context"
	"errors"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// durableState is a state with a [journal]: the copy begins with what is on disk.
type durableState struct {
	*state
	open func() (*journal, restored, error)
	// serverUID says which cluster the origin is, empty if that cannot be known.
	serverUID func(ctx context.Context) (string, error)
	kept      restored
}

var _ tarn.Restorer[Object] = (*durableState)(nil)

// When events are written to the journal: at the latest when there are so many, when they
// have so many bytes, or at the first commit after so long. A position alone is written
// less often: after a crash the origin sends a bookmark again.
const (
	journalEvents        = 256
	journalEventBytes    = 1 << 20
	journalDelay         = time.Second
	journalPositionDelay = 10 * time.Second
)

// Open reads what is on disk. If that fails, the copy begins as one without a directory.
func (s *durableState) Open(context.Context, func() error) (tarn.Kept, error) {
	j, kept, err := s.open()
	if err != nil {
		s.logger.Error("The directory of a resource cannot be used; its past is kept in memory only.", "resource", s.name, "error", err)
		s.mu.Lock()
		s.journalErr = err
		s.mu.Unlock()
		return tarn.Kept{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal, s.kept = j, kept
	all := tarn.Kept{Confirm: func(ctx context.Context) error { return s.confirmServer(ctx, j) }}
	if kept.last == nil {
		return all, nil
	}
	at := kept.last.position
	s.content, s.version, s.epoch = kept.content, versionOf(at.Version), at.Epoch
	s.copyVersion = s.version
	s.log = eventLog{first: j.end, floor: s.version}
	s.saved, s.savedVersion, s.savedAt = j.end, s.version, kept.last.contact
	s.synced = true
	all.Positions, all.LastContact = []tarn.Position{at}, kept.last.contact
	return all, nil
}

// Load returns the objects.
func (s *durableState) Load(context.Context) ([]tarn.Change[Object], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := make([]tarn.Change[Object], 0, len(s.content.objects))
	for _, o := range s.content.objects {
		changes = append(changes, tarn.Change[Object]{Type: tarn.Add, Key: tarn.Key(o.Key()), Object: o})
	}
	s.kept = restored{}
	return changes, nil
}

// Close writes what is left.
func (s *durableState) Close() {
	if s.journal == nil {
		return
	}
	s.mu.RLock()
	contact := s.heard
	s.mu.RUnlock()
	s.persist(contact, true)
	s.journal.close()
}

// confirmServer finds out whether the origin is the cluster that the journal came from. If
// it is another one, the journal is emptied before that is recorded, and what was read from it
// is not served or written any more.
func (s *durableState) confirmServer(ctx context.Context, j *journal) error {
	uid, err := s.serverUID(ctx)
	if err != nil || uid == "" {
		return err
	}
	kept := j.origin()
	if kept.Server == uid {
		return nil
	}
	other := kept.Server != ""
	if other {
		s.unsync()
		j.forget()
	}
	kept.Server = uid
	if err := j.setOrigin(kept); err != nil {
		return err
	}
	if other {
		return tarn.ErrOtherSource
	}
	return nil
}

// persist writes the events that are not on disk yet, if it is time. It is called by the
// committing goroutine, without the lock: readers do not wait for the disk.
func (s *state) persist(contact time.Time, now bool) {
	if s.journal == nil {
		return
	}
	s.mu.Lock()
	if s.saved < s.log.first {
		s.saved, s.savedVersion = s.log.first, s.log.floor // the past was dropped
	}
	events, _ := s.log.after(s.saved)
	var bytes int64
	for _, e := range events {
		bytes += size(e)
	}
	waited := contact.Sub(s.savedAt)
	due := now || len(events) >= journalEvents || bytes >= journalEventBytes || len(events) > 0 && waited >= journalDelay ||
		s.version > s.savedVersion && waited >= journalPositionDelay
	if !due || !s.synced {
		s.mu.Unlock()
		return
	}
	position := tarn.Position{Version: tarn.Version(versionString(s.version)), Epoch: s.epoch, Complete: s.complete}
	from, version, first, end := s.savedVersion, s.version, s.saved, s.log.end()
	objects := s.now("").Objects
	s.mu.Unlock()
	_ = s.journal.append(first, from, &chunk{position: position, contact: contact, events: events}) // it says so itself
	s.journal.save(end, position, contact, objects)
	s.mu.Lock()
	s.saved, s.savedVersion, s.savedAt = end, version, contact
	s.mu.Unlock()
}

// older returns the place of a watch from a version that is only on disk.
func (s *state) older(version int64) (place, rewinds int, ok bool) {
	s.mu.RLock()
	j, floor, rewinds := s.journal, s.log.floor, s.rewinds
	s.mu.RUnlock()
	if j == nil || version <= 0 || version >= floor {
		return 0, 0, false
	}
	place, err := j.since(version)
	return place, rewinds, err == nil
}

// olderListing is the content at a version that only the journal reaches back to.
func (s *state) olderListing(ctx context.Context, namespace string, version int64) (apiserver.Listing, error) {
	s.mu.RLock()
	j, floor, rewinds := s.journal, s.log.floor, s.rewinds
	s.mu.RUnlock()
	if j == nil || version >= floor {
		return apiserver.Listing{}, apiserver.ErrExpired
	}
	objects, err := j.past.get(ctx, pastKey{version, rewinds}, func() ([]*apiserver.Object, error) {
		s.mu.Lock()
		first := s.log.first
		objects := s.before(first)
		s.mu.Unlock()
		return j.at(ctx, version, objects, first)
	})
	if ctx.Err() != nil {
		return apiserver.Listing{}, context.Cause(ctx)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err != nil || rewinds != s.rewinds {
		return apiserver.Listing{}, apiserver.ErrExpired
	}
	return apiserver.Listing{Objects: within(objects, namespace), Version: version}, nil
}

// readOlder reads events that are only on disk.
func (p *place) readOlder(from int) ([]*apiserver.Event, int64, error) {
	s := p.state
	events, err := s.journal.after(from)
	if err == nil && len(events) == 0 {
		err = errors.New("no events")
	}
	if err != nil {
		s.overruns.Add(1)
		return nil, 0, errTooFarBehind
	}
	s.mu.RLock()
	end, rewinds, floor := s.log.end(), s.rewinds, s.log.floor
	s.mu.RUnlock()
	if rewinds != p.rewinds {
		return nil, 0, apiserver.TooOld(p.after, floor)
	}
	if next := from + len(events); next < end {
		p.pending.Store(int64(next))
	}
	return events, events[len(events)-1].Version, nil
}
