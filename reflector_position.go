package tarn

import "time"

// at is the position of the store once what was read up to a version is written.
func (r *Reflector[T]) at(v Version) Position {
	return Position{Epoch: r.epoch, Version: v, Complete: r.unreadable.due.IsZero() && !r.monitor.bad.lacking()}
}

// newEpoch begins another one, because versions from now on cannot be compared with
// those before.
//
// Why the time and not a number: a copy that lost its content begins at no epoch again,
// and must not come to one that a sink has met before.
func (r *Reflector[T]) newEpoch() {
	r.epoch = r.opts.Clock.Now().UTC().Format(time.RFC3339Nano)
}

// lacking says whether there is an object that is not in the store as the source has it.
// What a store has taken, but not in full, does not count: it would take no more of it
// from a list.
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
