package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tarnproject/tarn"
)

// confirmOnce asks the source once, and tells the answer to all sections of the copy: each has
// to be compared if it is another source.
func (s *Sink[T]) confirmOnce() func(ctx context.Context) error {
	var mu sync.Mutex
	var answered bool
	var verdict error
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if !answered {
			err := s.confirm(ctx)
			if err != nil && !errors.Is(err, tarn.ErrOtherSource) {
				return err
			}
			answered, verdict = true, err
		}
		return verdict
	}
}

// serverIdentity begins the identity of a source by its address; any other identity is that of
// the source itself. The two prove nothing about each other (kube.OtherCluster).
const serverIdentity = "server "

// otherSource reports whether two identities certainly are of different sources, and which one
// to remember.
func otherSource(before, now string) (other bool, remember string) {
	had, has := strings.HasPrefix(before, serverIdentity), strings.HasPrefix(now, serverIdentity)
	switch {
	case before == "" || had && !has:
		return false, now
	case now == "" || has && !had:
		return false, before
	}
	return before != now, now
}

// confirm checks that the bucket is of the source that is copied now, and records which
// one that is.
func (s *Sink[T]) confirm(ctx context.Context) error {
	now, err := s.askSource(ctx)
	if err != nil || now == "" {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.at.Source
	var other bool
	other, s.source = otherSource(before, now)
	s.at = s.relabelled(s.at) // the next checkpoint says so
	if other {
		return fmt.Errorf("%w: bucket %s is of %s, and this is %s", tarn.ErrOtherSource, s.bucket.Name, before, now)
	}
	return nil
}
