package cache

import (
	"errors"
	"testing"
	"time"

	upstream "k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

func TestRetryLikeClientGo(t *testing.T) {
	counted, other := errors.New("counted"), errors.New("other")
	counts := func(err error) bool { return err == counted }
	rapid.Check(t, func(t *rapid.T) {
		second := func(label string) time.Duration {
			return time.Duration(rapid.IntRange(0, 4).Draw(t, label)) * time.Second
		}
		limit, gap := second("limit"), second("gap")
		clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
		ours := NewRetryWithDeadline(limit, gap, counts, clock)
		theirs := upstream.NewRetryWithDeadline(limit, gap, counts, clock)
		t.Repeat(map[string]func(*rapid.T){
			"error": func(*rapid.T) { ours.After(counted); theirs.After(counted) },
			"other": func(*rapid.T) { ours.After(other); theirs.After(other) },
			"wait":  func(*rapid.T) { clock.Step(second("time")) },
			"ask": func(t *rapid.T) {
				if got, want := ours.ShouldRetry(), theirs.ShouldRetry(); got != want {
					t.Fatalf("retry: %v, client-go says %v", got, want)
				}
			},
		})
	})
}
