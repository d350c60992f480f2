package tarn

import (
	"context"
	"time"
)

// probeDeadline is the time limit of a probe. The answer is one item: a source that
// takes longer is not available.
const probeDeadline = 30 * time.Second

// probe asks the source for its current version, by a consistent list of one item,
// and declares a rewind if that is older than ours.
//
// Why not simply watch: a restored server that is asked for changes since a version
// that it has not reached sends nothing, not even an error. A quiet collection sends
// nothing either, so only a request distinguishes the two.
//
// It returns false if the state must be read again.
func (r *Reflector[T]) probe(ctx context.Context) (ok bool, err error) {
	page, err := r.list(ctx, ListQuery{AtLeast: Latest, Limit: 1}, probeDeadline)
	if err != nil {
		return false, r.explain("probe at", Latest, err)
	}
	r.suspicion.settle()
	c, comparable := page.Version.Compare(r.version)
	if !comparable {
		return true, nil
	}
	if c < 0 {
		r.rewind(ctx, page.Version)
		return false, nil
	}
	if c == 0 {
		r.monitor.contacted(r.version, 0)
	}
	return true, nil
}
