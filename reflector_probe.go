package tarn

import (
	"context"
	"time"
)

// probeDeadline is how long the answer to a probe is waited for. It is one item:
// a source that takes longer is as good as gone, and whoever asks it
// must not hang on it.
const probeDeadline = 30 * time.Second

// probe asks the source for its present version, by a consistent list of one
// item, and declares a rewind if that is older than ours.
//
// Why not simply watch: a restored server that is asked for changes since a
// version it has not reached answers with silence, not with an error. Silence
// is also what a quiet collection looks like, so only asking tells the two
// apart.
//
// It returns false if the state must be read anew.
func (r *Reflector[T]) probe(ctx context.Context) (ok bool, err error) {
	page, err := r.list(ctx, ListQuery{AtLeast: Latest, Limit: 1}, probeDeadline)
	if err != nil {
		return false, r.explain("probe at", Latest, err)
	}
	c, comparable := page.Version.Compare(r.version)
	if !comparable {
		return true, nil
	}
	if c < 0 {
		r.rewind(ctx, page.Version)
		return false, nil
	}
	if c == 0 {
		r.monitor.heard(r.version, 0)
	}
	return true, nil
}
