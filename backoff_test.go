package tarn

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoffGrowsAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{Base: time.Second, Max: 10 * time.Second, Reset: time.Minute}
		next := b.Delay(realClock{}, nil)
		want := func(least time.Duration) {
			t.Helper()
			if d := next(); d < least || d >= 2*least {
				t.Errorf("waits %s, want at least %s and less than twice that", d, least)
			}
		}
		for _, least := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
			want(least * time.Second)
		}
		time.Sleep(time.Minute) // not longer than Reset
		want(10 * time.Second)
		time.Sleep(time.Minute + 1)
		want(time.Second)
		want(2 * time.Second)
	})
}

// A thousand replicas that lost the same server must not come back in step.
func TestBackoffSpreads(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[DefaultBackoff.Delay(realClock{}, nil)()] = true
	}
	if len(seen) < 90 {
		t.Errorf("a hundred first waits have only %d lengths", len(seen))
	}
}

func TestBackoffOfNothing(t *testing.T) {
	next := Backoff{}.Delay(realClock{}, nil)
	for range 3 {
		if d := next(); d != 0 {
			t.Errorf("waits %s", d)
		}
	}
}

func TestRetryWindow(t *testing.T) {
	type failure struct {
		at    time.Duration
		retry bool
	}
	for _, test := range []struct {
		name     string
		length   time.Duration
		failures []failure
	}{
		{"without a length there is no retry", 0, []failure{{0, false}, {time.Second, false}}},
		{"within the length, then no more", 30 * time.Second, []failure{{0, true}, {30 * time.Second, true}, {31 * time.Second, false}}},
		{"after it closed it opens with the next failure", 10 * time.Second, []failure{{0, true}, {11 * time.Second, false}, {12 * time.Second, true}, {22 * time.Second, true}, {23 * time.Second, false}}},
		{"a quiet minute opens it anew", 10 * time.Second, []failure{{0, true}, {5 * time.Second, true}, {65 * time.Second, true}, {75 * time.Second, true}, {76 * time.Second, false}}},
		{"less than a quiet minute does not", 10 * time.Second, []failure{{0, true}, {59 * time.Second, false}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w retryWindow
			start := time.Unix(1000, 0)
			for _, f := range test.failures {
				if got := w.failed(start.Add(f.at), test.length); got != f.retry {
					t.Errorf("after %s retry is %v", f.at, got)
				}
			}
		})
	}
}
