package tarn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSilenceTimerFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := newSilenceTimer(t.Context(), realClock{}, time.Minute)
		defer s.close()
		for range 3 {
			time.Sleep(50 * time.Second)
			s.reset()
		}
		if s.expired() || s.ctx.Err() != nil {
			t.Error("silent, although something was heard every 50 seconds")
		}
		<-s.ctx.Done()
		if !s.expired() || !errors.Is(context.Cause(s.ctx), ErrSilent) {
			t.Errorf("ended by %v", context.Cause(s.ctx))
		}
		if took, want := time.Since(start), 150*time.Second+time.Minute; took != want {
			t.Errorf("fell silent after %s, want a minute after the last word, %s", took, want)
		}
	})
}

func TestSilenceTimerWithoutLimitNeverFallsSilent(t *testing.T) {
	for _, limit := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			s := newSilenceTimer(t.Context(), realClock{}, limit)
			time.Sleep(100 * time.Hour)
			if s.expired() || s.ctx.Err() != nil {
				t.Errorf("limit %s: ended by %v", limit, context.Cause(s.ctx))
			}
			s.close()
		})
	}
}

// An end that is not silence is not mistaken for it.
func TestSilenceTimerEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := cancelable(t)
		s := newSilenceTimer(ctx, realClock{}, time.Minute)
		cancel()
		<-s.ctx.Done()
		if s.expired() {
			t.Error("the context ended, and it calls that silence")
		}
		s.close()

		s = newSilenceTimer(t.Context(), realClock{}, time.Minute)
		s.close()
		s.close()
		if s.ctx.Err() == nil || s.expired() {
			t.Errorf("closed, it says %v", context.Cause(s.ctx))
		}
	})
}

// yearOne is a clock that begins with the zero time, which has no nanoseconds
// since 1970.
type yearOne struct{ start time.Time }

func (c yearOne) Now() time.Time                 { return time.Time{}.Add(time.Since(c.start)) }
func (c yearOne) NewTimer(d time.Duration) Timer { return realClock{}.NewTimer(d) }

func TestSilenceDoesNotReadTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilenceTimer(t.Context(), yearOne{time.Now()}, time.Minute)
		time.Sleep(50 * time.Second)
		s.reset()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if s.expired() {
			t.Error("silent although something was heard within the limit")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !s.expired() {
			t.Error("not silent after the limit")
		}
		s.close()
	})
}
