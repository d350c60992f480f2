package verify

import (
	"context"
	"testing"
	"testing/synctest"
)

// The comparison finds and repairs a stray write to an object's own memory, which
// nothing else verifies.
func TestRollingRepairsStrayWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		rounds := make(chan Round)
		rolling, err := NewRolling(l.target, RollingOptions{OnRound: func(r Round) {
			if r.Number == 1 {
				held, _ := l.store.Get(keyOf(4))
				held.Object["metadata"].(map[string]any)["labels"].(map[string]any)["app.kubernetes.io/name"] = "puddle"
			}
			rounds <- r
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(rounds)
			_ = rolling.Run(ctx)
		}()
		if r := <-rounds; r.Result.Verdict != Equal {
			t.Errorf("%s", r)
		}
		r := <-rounds
		if r.Result.Verdict != Different || r.Result.Changed != 1 || !r.Repaired() {
			t.Errorf("%s", r)
		}
		for i := range 20 {
			l.put(i, "second")
		}
		l.reach()
		cancel()
		if r, more := <-rounds; more {
			t.Errorf("one round too many: %s", r)
		}
		l.want(l.once(Options{}), Equal, 0, 0, 0)
	})
}
