package synctrack

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLazyComputesOncePerNotification(t *testing.T) {
	calls := 0
	l := Lazy[int]{Evaluate: func() (int, error) { calls++; return calls, nil }}
	for want := 1; want <= 3; want++ {
		for range 5 {
			if got, err := l.Get(); got != want || err != nil {
				t.Errorf("got %d, %v; want %d", got, err, want)
			}
		}
		l.Notify()
		l.Notify()
	}
}

func TestLazyDoesNotKeepFailures(t *testing.T) {
	fail := errors.New("not now")
	l := Lazy[int]{Evaluate: func() (int, error) { return 0, fail }}
	if _, err := l.Get(); err != fail {
		t.Errorf("got %v", err)
	}
	l.Evaluate = func() (int, error) { return 7, nil }
	if got, err := l.Get(); got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

func TestLazyAskedByManyAtOnce(t *testing.T) {
	var calls atomic.Int64
	l := Lazy[int64]{Evaluate: func() (int64, error) { return calls.Add(1), nil }}
	var asked sync.WaitGroup
	for range 50 {
		asked.Go(func() {
			if got, err := l.Get(); got != 1 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	asked.Wait()
}

// A slow computation is not disturbed by a notification, and does not hold up
// callers that ask after it.
func TestLazyNotifiedDuringAComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var input, calls atomic.Int64
		l := Lazy[int64]{}
		l.Evaluate = func() (int64, error) {
			calls.Add(1)
			seen := input.Load()
			if seen == 0 {
				time.Sleep(time.Hour)
			}
			return seen, nil
		}
		early, asked := int64(-1), sync.WaitGroup{}
		asked.Go(func() { early, _ = l.Get() })
		synctest.Wait()
		input.Store(1)
		l.Notify()
		start := time.Now()
		if got, _ := l.Get(); got != 1 || time.Since(start) > 0 {
			t.Errorf("after the notification: got %d after %v", got, time.Since(start))
		}
		asked.Wait()
		if early != 0 {
			t.Errorf("before the notification: got %d", early)
		}
		if got, _ := l.Get(); got != 1 {
			t.Errorf("the old value was kept: %d", got)
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("computed %d times", n)
		}
	})
}
