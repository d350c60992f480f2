package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
)

// Target is a replica, and where it comes from.
type Target[T any] struct {
	// Name is the name of the replica in results and errors.
	Name    string
	Replica *tarn.Replica[T]
	// Store is the replica's.
	Store *memory.Store[T]
	// Sources are the replica's, one, or one for each of its sections. They are
	// read while the replica reads them too: a [kube.Source] allows that, others
	// must as well.
	Sources []tarn.Source[T]
	// Transform is the replica's, nil if it has none.
	Transform func(T) (T, error)
}

// listTimeout is how long a page may take to come, as for the engine's lists.
const listTimeout = 5 * time.Minute

var errNoAnswer = fmt.Errorf("no answer to a list within %s", listTimeout)

func (t Target[T]) validate() error {
	if t.Replica == nil || t.Store == nil || len(t.Sources) == 0 {
		return fmt.Errorf("verify: %q needs a replica, its store and its sources", t.Name)
	}
	for _, source := range t.Sources {
		if source == nil {
			return fmt.Errorf("verify: %q has a source that is nil", t.Name)
		}
	}
	return nil
}

// apart is the target with sources whose objects share nothing with the copy's.
func (t Target[T]) apart() Target[T] {
	sources := make([]tarn.Source[T], len(t.Sources))
	for i, source := range t.Sources {
		if s, ok := source.(*kube.Source[T]); ok {
			source = s.Unshared()
		}
		sources[i] = source
	}
	t.Sources = sources
	return t
}

// list requests a page.
func (t Target[T]) list(ctx context.Context, source tarn.Source[T], q tarn.ListQuery) (tarn.Page[T], error) {
	within, cancel := context.WithTimeoutCause(ctx, listTimeout, errNoAnswer)
	defer cancel()
	page, err := source.List(within, q)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = errNoAnswer
	}
	return page, err
}

// take makes of the server's object what the replica would have stored, and returns
// the version of the original: a transform may have removed that.
func (t Target[T]) take(source tarn.Source[T], object T) (side side[T], version tarn.Version, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while making the object what the copy would keep: %v", p)
		}
	}()
	m, err := source.Describe(object)
	side.Meta, side.object = m, object
	if err != nil || t.Transform == nil {
		return side, m.Version, err
	}
	if side.object, err = t.Transform(object); err != nil {
		return side, m.Version, err
	}
	after, err := source.Describe(side.object)
	if err != nil {
		return side, m.Version, fmt.Errorf("after the transform: %w", err)
	}
	side.Meta = after
	return side, m.Version, nil
}
