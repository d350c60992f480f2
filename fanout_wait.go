package tarn

import (
	"fmt"
	"slices"
)

// versionWaiters holds a channel for each wait for a version.
type versionWaiters struct {
	waiting map[chan struct{}]Version
}

func (w *versionWaiters) wait(ch chan struct{}, v Version) {
	if w.waiting == nil {
		w.waiting = map[chan struct{}]Version{}
	}
	w.waiting[ch] = v
}

// reach ends the waits for v and older versions, and those that cannot be compared
// with v, which then fail.
func (w *versionWaiters) reach(v Version) {
	for ch, want := range w.waiting {
		if c, ok := v.Compare(want); !ok || c >= 0 {
			close(ch)
			delete(w.waiting, ch)
		}
	}
}

func (w *versionWaiters) close() {
	for ch := range w.waiting {
		close(ch)
	}
	w.waiting = nil
}

// everywhere means all sections.
var everywhere *sectionState

// await reports whether a section, or everywhere, has reached v. If not, it returns a
// channel that is closed when it may have.
func (h *fanout[T]) await(section *sectionState, v Version) (reached bool, wait chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, synced := h.version(), h.synced && !h.someToCome()
	if section != everywhere {
		now, synced = section.position.Version, section.synced
		if section.removed {
			return false, nil, fmt.Errorf("the section %q %w", section.position.Section, ErrSectionRemoved)
		}
	}
	if now != "" || synced {
		c, ok := now.Compare(v)
		if !ok {
			return false, nil, fmt.Errorf("the copy is at %q: %w", now, ErrOpaqueVersion)
		}
		if c >= 0 {
			return true, nil, nil
		}
	}
	if h.closed {
		return false, nil, fmt.Errorf("the replica has %w", ErrStopped)
	}
	wait = make(chan struct{})
	h.waitersOf(section).wait(wait, v)
	return false, wait, nil
}

// someToCome says whether a section that was added later has not been read yet. The replica
// has no version until then. One of independent sections never has one.
func (h *fanout[T]) someToCome() bool {
	return slices.ContainsFunc(h.sections, func(s *sectionState) bool { return !s.synced && !s.independent })
}

func (h *fanout[T]) waitersOf(section *sectionState) *versionWaiters {
	if section == everywhere {
		return &h.waiters
	}
	return &section.waiters
}

// cancelWait removes the channel of an await.
func (h *fanout[T]) cancelWait(section *sectionState, wait chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waitersOf(section).waiting, wait)
}
