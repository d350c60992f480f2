package tarn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestEarFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		e := listen(t.Context(), realClock{}, time.Minute)
		defer e.close()
		for range 3 {
			time.Sleep(50 * time.Second)
			e.heard()
		}
		if e.silent() || e.ctx.Err() != nil {
			t.Error("silent, although something was heard every 50 seconds")
		}
		<-e.ctx.Done()
		if !e.silent() || !errors.Is(context.Cause(e.ctx), ErrSilent) {
			t.Errorf("ended by %v", context.Cause(e.ctx))
		}
		if took, want := time.Since(start), 150*time.Second+time.Minute; took != want {
			t.Errorf("fell silent after %s, want a minute after the last word, %s", took, want)
		}
	})
}

func TestEarWithoutLimitNeverFallsSilent(t *testing.T) {
	for _, limit := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			e := listen(t.Context(), realClock{}, limit)
			time.Sleep(100 * time.Hour)
			if e.silent() || e.ctx.Err() != nil {
				t.Errorf("limit %s: ended by %v", limit, context.Cause(e.ctx))
			}
			e.close()
		})
	}
}

// An end that is not silence is not taken for it.
func TestEarEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := cancelable(t)
		e := listen(ctx, realClock{}, time.Minute)
		cancel()
		<-e.ctx.Done()
		if e.silent() {
			t.Error("the context ended, and it calls that silence")
		}
		e.close()

		e = listen(t.Context(), realClock{}, time.Minute)
		e.close()
		e.close()
		if e.ctx.Err() == nil || e.silent() {
			t.Errorf("closed, it says %v", context.Cause(e.ctx))
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
		e := listen(t.Context(), yearOne{time.Now()}, time.Minute)
		time.Sleep(50 * time.Second)
		e.heard()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if e.silent() {
			t.Error("silent although something was heard within the limit")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !e.silent() {
			t.Error("not silent after the limit")
		}
		e.close()
	})
}
