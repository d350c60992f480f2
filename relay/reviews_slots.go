package relay

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// tokenReviewsAtOnce bounds the TokenReviews of unknown tokens that run at once, and
	// apart from them those of known ones. Both together take half of the 200 writes that
	// an API server runs at once unless it is configured otherwise.
	tokenReviewsAtOnce = 50
	// tokenReviewsWaiting bounds how many requests wait for one of these. When a relay
	// starts, each of its clients comes with a token that it does not know.
	tokenReviewsWaiting = 10_000
	// tokenReviewWait is how long they wait. It leaves the review half of reviewTimeout.
	tokenReviewWait = reviewTimeout / 2
)

// reviewSlots bounds how many reviews run at once. Others wait in the order in which they
// came. Those that wait for too long, or come when too many wait, get 429.
type reviewSlots struct {
	taken       chan struct{}
	waiting     atomic.Int64
	mostWaiting int64
}

func newReviewSlots(most int, mostWaiting int64) *reviewSlots {
	return &reviewSlots{taken: make(chan struct{}, most), mostWaiting: mostWaiting}
}

// take waits for a slot. It is free again when release is called.
func (s *reviewSlots) take(ctx context.Context) (release func(), err error) {
	release = func() { <-s.taken }
	select {
	case s.taken <- struct{}{}:
		return release, nil
	default:
	}
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > s.mostWaiting {
		return nil, tooManyReviews()
	}
	timer := time.NewTimer(tokenReviewWait)
	defer timer.Stop()
	select {
	case s.taken <- struct{}{}:
		return release, nil
	case <-timer.C:
		return nil, tooManyReviews()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func tooManyReviews() error {
	return apierrors.NewTooManyRequests("the relay cannot find out who you are yet: it is asking about too many other tokens", 1)
}
