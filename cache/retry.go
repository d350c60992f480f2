package cache

import (
	"time"

	"k8s.io/utils/clock"
)

// NewRetryWithDeadline decides how long a kind of error is worth retrying: for
// maxRetryDuration from the first one on, where an error that comes
// minResetPeriod or more after the one before counts as a first one again.
// Errors that isRetryable rejects are ignored; they neither end nor prolong a
// series.
func NewRetryWithDeadline(maxRetryDuration, minResetPeriod time.Duration, isRetryable func(error) bool, clock clock.Clock) RetryWithDeadline {
	return &errorSeries{limit: maxRetryDuration, gap: minResetPeriod, counts: isRetryable, clock: clock}
}

// errorSeries is a run of errors close to each other in time. It is empty while
// begin is zero.
type errorSeries struct {
	begin, latest time.Time

	limit, gap time.Duration
	counts     func(error) bool
	clock      clock.Clock
}

func (s *errorSeries) After(err error) {
	if !s.counts(err) {
		return
	}
	now := s.clock.Now()
	if s.begin.IsZero() || now.Sub(s.latest) >= s.gap {
		s.begin = now
	}
	s.latest = now
}

// ShouldRetry ends the series when it returns false, so that the next error starts
// a new one.
func (s *errorSeries) ShouldRetry() bool {
	if s.limit <= 0 || s.begin.IsZero() {
		return false
	}
	if s.clock.Since(s.begin) > s.limit {
		s.begin = time.Time{}
		return false
	}
	return true
}
