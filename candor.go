package tarn

// A Candid store is a [Durable] one that also keeps whether its content is all that
// the source said. It is not while an object could not be taken, or something was
// said that could not be read: then Health tells of it, but a process after this
// one, which goes on from the version that was kept, would never hear of it again.
// So it is kept with the content, and brought back as Kept.Unsound.
type Candid interface {
	// KeepSound comes before an Apply, or a Filled, and is about the state after it.
	KeepSound(sound bool)
}

// sound says whether the content is what the source said up to now. What a store
// has taken, but not in full, does not count: it would take no more of it from a
// list.
func (r *Reflector[T]) sound() bool { return r.unreadable.due.IsZero() && !r.monitor.bad.lacking() }

// keepSound tells a store which wants to know.
func keepSound(store any, sound bool) {
	if c, ok := store.(Candid); ok {
		c.KeepSound(sound)
	}
}

// lacking says whether there is an object that is not in the store as the source
// has it.
func (q *quarantine) lacking() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.keyless > 0 {
		return true
	}
	for _, b := range q.byKey {
		if !b.taken {
			return true
		}
	}
	return false
}

// noteSound notes of a section whether it is sound, and tells the store whether all
// are. One of which nothing was written yet counts as not: it may turn out to be
// that of another source. The lock is held.
func (h *fanout[T]) noteSound(section int, sound bool) {
	h.sound[section] = sound
	all := true
	for _, s := range h.sound {
		all = all && s
	}
	keepSound(h.store, all)
}
