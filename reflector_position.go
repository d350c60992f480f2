package tarn

import "time"

// at is the position to write with the changes up to v.
func (r *Reflector[T]) at(v Version) Position {
	return Position{Epoch: r.epoch, Version: v, Complete: r.unreadable.due.IsZero() && !r.monitor.bad.incomplete()}
}

// newEpoch begins an epoch, because later versions cannot be compared with earlier ones.
//
// Why the time and not a number: a copy whose content is deleted begins without an epoch
// again, and must not reuse one that a sink has seen.
func (r *Reflector[T]) newEpoch() {
	r.epoch = r.opts.Clock.Now().UTC().Format(time.RFC3339Nano)
}
