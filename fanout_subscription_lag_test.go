package tarn

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{})
		a := c.subscribe(SubscribeOptions{})
		step := make(chan struct{})
		a.pause = func(Change[*entry]) { <-step }
		want := func(pending int, age time.Duration) {
			t.Helper()
			synctest.Wait()
			if got := a.Lag(); got != (Lag{pending, age}) {
				t.Errorf("the lag is %+v, want %d for %s", got, pending, age)
			}
		}
		want(0, 0)
		c.start()
		want(2, 0)
		time.Sleep(time.Second)
		want(2, time.Second)
		r.put("a", "new")
		time.Sleep(time.Second)
		want(3, 2*time.Second)
		step <- struct{}{}
		want(2, 2*time.Second)
		step <- struct{}{}
		want(1, time.Second)
		time.Sleep(time.Minute)
		want(1, time.Minute+time.Second)
		step <- struct{}{}
		want(0, 0)
	})
}

// The same for a subscription whose backlog is folded and that has not begun.
func TestLagOfAFoldedBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{}).start()
		a := c.subscribe(SubscribeOptions{Inline: true, Bound: 1})
		synctest.Wait()
		time.Sleep(time.Second)
		r.remove("a")
		r.put("b", "new")
		r.put("b", "newer")
		r.put("c", "")
		synctest.Wait()
		time.Sleep(time.Second)
		if got := a.Lag(); got != (Lag{2, 2 * time.Second}) {
			t.Errorf("the lag is %+v", got)
		}
		go a.Run(t.Context())
		synctest.Wait()
		a.wantHeard("*b5 | +c6")
	})
}

// Promise 5: a subscriber that hangs costs memory by the number of keys.
func TestStalledSubscriberIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 1000
		updates := testsize.Of(300_000, 30_000)
		r := newRemote()
		for i := range keys {
			r.put(fmt.Sprint(i), "")
		}
		c := newCopy(t, r, Options[*entry]{})
		a := c.subscribe(SubscribeOptions{})
		release := make(chan struct{})
		a.pause = func(Change[*entry]) { <-release }
		c.start()
		for i := range updates {
			r.put(fmt.Sprint(i%keys), "")
			if i%keys == 0 {
				synctest.Wait()
				if lag := a.Lag().Pending; lag > defaultBound+handOver+keys {
					t.Fatalf("after %d updates %d changes are held", i, lag)
				}
			}
		}
		synctest.Wait()
		if lag := a.Lag().Pending; lag > keys+handOver {
			t.Errorf("%d changes are held for %d keys", lag, keys)
		}
		close(release)
		synctest.Wait()
		if !maps.Equal(a.state(), r.state()) || len(a.state()) != keys {
			t.Error("the subscriber did not come to the state of the source")
		}
	})
}
