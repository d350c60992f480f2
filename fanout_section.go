package tarn

import (
	"fmt"
	"slices"
)

// sectionState is how far a section has come. The fan-out's lock guards it.
type sectionState struct {
	position Position
	prefix   Key
	// missed is why the next Apply may have missed states; empty if it has not.
	missed GapCause
	// synced says that the first whole state has been written; settled that no caller waits
	// for that any longer: it has been written, or the section is independent and has failed.
	synced, settled bool
	// independent is that of [Section], removed says that the section was removed.
	independent, removed bool
	waiters              versionWaiters
	// noteReached records in Health what the section has reached, before a caller that
	// waited for it can look.
	noteReached func(v Version)
}

func newSectionState[T any](s *section[T]) *sectionState {
	return &sectionState{
		position: Position{Section: s.name}, prefix: s.prefix, independent: s.independent,
		noteReached: func(v Version) { s.reflector.monitor.update(func(h *Health) { h.Version = v }) },
	}
}

// known says whether the copy has content of the section.
func (s *sectionState) known() bool { return s.position.Version != "" || s.position.Complete }

// gap is the range of versions whose states a write may have missed, nil if there is
// none.
func (s *sectionState) gap(at Position) *Gap {
	cause, before := s.missed, s.position
	s.missed = ""
	if cause == "" && !(before.Complete && at.Complete) {
		cause = GapBad
	}
	if cause == "" || before.Version == "" || before.Version == at.Version && before.Epoch == at.Epoch {
		return nil
	}
	return &Gap{Section: at.Section, From: before.Version, To: at.Version, Cause: cause}
}

// noteMissed records why the next write of a section may lack states. A bad object does
// not replace the cause that the whole state was read.
func (h *fanout[T]) noteMissed(section *sectionState, cause GapCause) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if section.missed == "" || cause != GapBad {
		section.missed = cause
	}
}

// sectionPositions are those of the sections that have one.
func (h *fanout[T]) sectionPositions() (all Positions) {
	for _, s := range h.sections {
		if s.known() {
			all.Move(s.position)
		}
	}
	return all
}

// version is the one that all sections have reached, empty while that is not known.
// Why not the store's version: others may write to a store too, as the users of an
// informer's indexer do, and a store knows of a section only when that was written for
// the first time.
func (h *fanout[T]) version() Version { return h.joint.Load().(Version) }

// position is the version that a section has reached.
func (h *fanout[T]) position(section *sectionState) Version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return section.position.Version
}

// moveTo records the position of a section, and wakes the callers that wait for it.
func (h *fanout[T]) moveTo(section *sectionState, at Position) {
	section.position = at
	h.joinVersions()
	h.wake(section)
}

// joinVersions finds the version that all sections have reached. Versions of independent
// sections have no common order.
func (h *fanout[T]) joinVersions() {
	var all []Position
	for _, s := range h.sections {
		if s.independent {
			h.joint.Store(Version(""))
			return
		}
		all = append(all, s.position)
	}
	if len(all) > 0 {
		h.joint.Store(oldest(all))
	}
}

// wake wakes the callers that wait for a version that a section has reached.
func (h *fanout[T]) wake(section *sectionState) {
	section.noteReached(section.position.Version)
	section.waiters.reach(section.position.Version)
	h.waiters.reach(h.version())
}

// markSynced records that the first whole state of a section has been written, and
// notifies everyone once that holds for all.
func (h *fanout[T]) markSynced(section *sectionState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	section.synced = true
	for _, s := range h.runners() {
		s.sectionSynced(section.position.Section)
	}
	h.settle(section)
	h.wake(section) // only now is a content without a version known to have none
}

// noteFailed ends the waits for an independent section, which has failed.
func (h *fanout[T]) noteFailed(section *sectionState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle(section)
}

// settle notifies everyone once all sections are settled. mu is held.
func (h *fanout[T]) settle(section *sectionState) {
	section.settled = true
	if h.synced || slices.ContainsFunc(h.sections, func(s *sectionState) bool { return !s.settled }) {
		return
	}
	h.synced = true
	close(h.allSynced)
	now := h.clock.Now()
	for _, f := range h.followers {
		f.mark(now)
	}
	for _, s := range h.runners() {
		signal(s.wake) // it may have waited for this
	}
	// Only now is a content without a version known to have none.
	for _, s := range h.sections {
		h.wake(s)
	}
}

// addSection adds a section, which has no content yet.
func (h *fanout[T]) addSection(section *sectionState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sections = append(h.sections, section)
	h.joinVersions()
}

// removeSection removes a section that does not run any more: its objects are deleted,
// for subscribers and sinks too.
func (h *fanout[T]) removeSection(section *sectionState) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := section.position.Section
	h.sections = slices.DeleteFunc(h.sections, func(s *sectionState) bool { return s == section })
	section.removed = true
	section.waiters.close()
	h.joinVersions()
	h.settle(section)
	deletes := h.removals(section.prefix)
	gone := Position{Section: name}
	err := h.store.Apply(deletes, gone)
	h.waiters.reach(h.version()) // without this section, the others may have reached it
	if !Taken(err) {
		return fmt.Errorf("the objects of the section %q could not be deleted: %w", name, err)
	}
	h.publish(deletes, nil)
	for _, s := range h.runners() {
		s.add(h.contact, deletes, gone, nil)
	}
	return nil
}

// removals are the deletes of the objects whose keys have a prefix.
func (h *fanout[T]) removals(prefix Key) (deletes []Change[T]) {
	for key, object := range withPrefix(h.store, prefix) {
		deletes = append(deletes, Change[T]{Type: Delete, Missed: true, Removed: true, Key: key, Old: object, Object: object, Version: h.versionOf(object)})
	}
	return deletes
}
