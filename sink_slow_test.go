package tarn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An engine that is unreachable for an hour, or as slow, costs no more memory than its bound. Health
// says how far behind it is, and what was folded is a gap afterwards.
func TestSinkBehindForAnHour(t *testing.T) {
	for name, c := range map[string]struct {
		commit func(context.Context, Batch[*entry]) error
		err    error
		lag    time.Duration
	}{
		"away": {func(context.Context, Batch[*entry]) error { return errUnreachable }, errUnreachable, 59 * time.Minute},
		"slow": {func(ctx context.Context, _ Batch[*entry]) error {
			select {
			case <-time.After(10 * time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, nil, 9 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRemote("a", "b", "c")
				const bound, size = 100 << 10, 1 << 10
				sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true, MaxBytes: bound, SizeOf: func(Change[*entry]) int { return size }})
				life := attached(t, r, sink)
				settle()
				sink.heard()
				sink.mu.Lock()
				sink.refuse = c.commit
				sink.mu.Unlock()
				var longest time.Duration
				for i := range 3600 {
					r.put([]string{"a", "b", "c"}[i%3], "")
					time.Sleep(time.Second)
					h := life.Health().Sinks[0]
					if h.PendingBytes > 2*bound || h.Pending > 2*bound/size { // one is on its way, and one waits
						t.Fatalf("after %d s, %d changes of %d bytes wait", i, h.Pending, h.PendingBytes)
					}
					longest = max(longest, h.Lag)
				}
				if h := life.Health().Sinks[0]; !errors.Is(h.Err, c.err) || longest < c.lag || h.Pending == 0 {
					t.Errorf("Health says %s, and the longest lag was %s", h, longest)
				}
				sink.allow()
				time.Sleep(20 * time.Minute)
				sink.wantState(t, r)
				if h := life.Health().Sinks[0]; h.Err != nil || h.Pending != 0 || h.Lag != 0 || h.Gaps == 0 {
					t.Errorf("afterwards Health says %s, with %d gaps", h, h.Gaps)
				}
				if heard := sink.heard(); !strings.Contains(heard, "folded") {
					t.Errorf("what was folded is not a gap: %s", heard)
				}
				_ = life.stop()
			})
		})
	}
}
