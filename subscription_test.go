package tarn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever comes, early or late, sees the whole state first, then its end, then
// what changes.
func TestSubscriberSeesStateThenChanges(t *testing.T) {
	for _, early := range []bool{true, false} {
		for _, inline := range []bool{true, false} {
			t.Run(fmt.Sprintf("early=%v inline=%v", early, inline), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRemote("a", "b")
					c := newCopy(t, r, Options[*entry]{})
					join := func() *audience {
						a := c.subscribe(SubscribeOptions{Inline: inline})
						if inline {
							go a.Run(t.Context())
						}
						return a
					}
					var a *audience
					if early {
						a = join()
					}
					c.start()
					synctest.Wait()
					if !early {
						a = join()
						synctest.Wait()
					}
					a.wantHeard("*a1 *b2 |")
					r.put("a", "new")
					r.remove("b")
					r.put("c", "")
					r.put("b", "again")
					synctest.Wait()
					a.wantHeard("*a1 *b2 | ~a1>a3 -b2>b4 +c5 +b6")
				})
			})
		}
	}
}

// What a subscriber is told does not depend on what others have been told.
func TestSubscribersShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		c := newCopy(t, r, Options[*entry]{}).start()
		first := c.subscribe(SubscribeOptions{})
		synctest.Wait()
		r.put("a", "new")
		synctest.Wait()
		second := c.subscribe(SubscribeOptions{})
		synctest.Wait()
		r.remove("a")
		synctest.Wait()
		third := c.subscribe(SubscribeOptions{})
		synctest.Wait()
		first.wantHeard("*a1 | ~a1>a2 -a2>a3")
		second.wantHeard("*a2 | -a2>a3")
		third.wantHeard("|")
	})
}

// One who joins between the first state and its end sees both.
func TestJoiningBeforeTheEndOfTheFirstState(t *testing.T) {
	h := newCopy(t, newRemote(), Options[*entry]{}).hub
	a := &entry{name: "a", version: "1"}
	if err := h.apply([]Change[*entry]{{Type: Add, Initial: true, Key: "a", Object: a, Version: "1"}}, "1"); err != nil {
		t.Fatal(err)
	}
	f, err := h.join(0, never)
	if err != nil {
		t.Fatal(err)
	}
	h.markSynced()
	h.markSynced()
	if got := show(takeAll(f.backlog, handOver)); got != "*a1 |" {
		t.Errorf("the follower is given %s", got)
	}
}

// Synced means that the function has had the first state, not that it is on its
// way.
func TestSyncedWaitsForTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a", "b", "c"), Options[*entry]{})
		a := c.subscribe(SubscribeOptions{})
		step := make(chan struct{})
		a.pause = func(Change[*entry]) { <-step }
		c.start()
		for range 3 {
			synctest.Wait()
			if isClosed(a.Synced()) {
				t.Error("synced before the function returned from the last of the first state")
			}
			step <- struct{}{}
		}
		synctest.Wait()
		a.wantHeard("*a1 *b2 *c3 |")
	})
}

func TestCloseWhileTheFunctionRuns(t *testing.T) {
	for _, inline := range []bool{true, false} {
		t.Run(fmt.Sprintf("inline=%v", inline), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCopy(t, newRemote("a", "b", "c"), Options[*entry]{})
				a := c.subscribe(SubscribeOptions{Inline: inline})
				release := make(chan struct{})
				a.pause = func(Change[*entry]) { <-release }
				if inline {
					go a.Run(t.Context())
				}
				c.start()
				synctest.Wait()
				a.Close()
				a.Close()
				if isClosed(a.Done()) {
					t.Error("done while the function runs")
				}
				close(release)
				<-a.Done()
				synctest.Wait()
				a.wantHeard("*a1")
				if n := len(c.hub.followers); n != 0 {
					t.Errorf("%d followers are left", n)
				}
			})
		})
	}
}

// A function that has seen enough ends its own subscription.
func TestCloseFromTheFunction(t *testing.T) {
	for _, inline := range []bool{true, false} {
		t.Run(fmt.Sprintf("inline=%v", inline), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCopy(t, newRemote("a", "b", "c"), Options[*entry]{})
				a := c.subscribe(SubscribeOptions{Inline: inline})
				a.pause = func(c Change[*entry]) {
					if c.Key == "b" {
						a.Close()
					}
				}
				c.start()
				if inline {
					a.Run(t.Context())
				}
				<-a.Done()
				a.wantHeard("*a1 *b2")
			})
		})
	}
}

func TestCloseBeforeTheStart(t *testing.T) {
	for _, inline := range []bool{true, false} {
		t.Run(fmt.Sprintf("inline=%v", inline), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCopy(t, newRemote("a"), Options[*entry]{})
				a := c.subscribe(SubscribeOptions{Inline: inline})
				a.Close()
				if !isClosed(a.Done()) {
					t.Error("closed before the start, it is not done")
				}
				c.start()
				if inline {
					a.Run(t.Context())
				}
				synctest.Wait()
				a.wantHeard("")
			})
		})
	}
}

// Run returns only when no function runs any more, and hands over nothing new
// once it is to end.
func TestStopWaitsForFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a", "b"), Options[*entry]{})
		a := c.subscribe(SubscribeOptions{})
		release := make(chan struct{})
		a.pause = func(Change[*entry]) { <-release }
		c.start()
		synctest.Wait()
		c.cancel()
		synctest.Wait()
		select {
		case err := <-c.ended:
			t.Fatalf("Run returned %v while a function runs", err)
		default:
		}
		close(release)
		if err := c.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		if !isClosed(a.Done()) {
			t.Error("not done after Run has returned")
		}
		a.wantHeard("*a1")
	})
}

func TestInlineIsLeftToTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		c := newCopy(t, r, Options[*entry]{}).start()
		a := c.subscribe(SubscribeOptions{Inline: true})
		synctest.Wait()
		a.wantHeard("")

		ctx, cancel := cancelable(t)
		go a.Run(ctx)
		synctest.Wait()
		a.wantHeard("*a1 |")

		cancel()
		<-a.Done()
		if n := len(c.hub.followers); n != 0 {
			t.Errorf("run to its end, it still follows: %d followers", n)
		}
		r.put("a", "new")
		synctest.Wait()
		if lag := a.Lag(); lag != (Lag{}) {
			t.Errorf("run to its end, it lags by %+v", lag)
		}
		a.Run(t.Context()) // returns at once: it may be called once
		a.wantHeard("*a1 |")
	})
}

func TestInlineEndsWithTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a"), Options[*entry]{})
		ran := c.subscribe(SubscribeOptions{Inline: true})
		idle := c.subscribe(SubscribeOptions{Inline: true})
		go ran.Run(t.Context())
		c.start()
		synctest.Wait()
		_ = c.stop()
		<-ran.Done()
		<-idle.Done()
		idle.Run(t.Context())
		idle.wantHeard("")
	})
}

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

// The same for one whose backlog is folded and who has not begun.
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
		const keys, updates = 1000, 300_000
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

// boom panics, from a function whose name can be found in the stack.
func boom(Change[*entry]) { panic("boom") }

// Without OnPanic a panic is told with its name and stack and goes on. The
// subscription is gone with it.
func TestPanicGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newCopy(t, newRemote("a"), Options[*entry]{Logger: slog.New(slog.NewTextHandler(&log, nil))}).start()
		c.subscribe(SubscribeOptions{})
		for i, opts := range []SubscribeOptions{
			{Inline: true, Name: "the panicky one"},
			{Inline: true}, // the third
		} {
			log.Reset()
			s, err := c.Subscribe(boom, opts)
			if err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if v := recover(); v != "boom" {
						t.Errorf("recovered %v", v)
					}
				}()
				s.Run(t.Context())
			}()
			name := []string{"the panicky one", "subscriber 3"}[i]
			for _, part := range []string{name, "key=a", "panic=boom", "tarn.boom"} {
				if !strings.Contains(log.String(), part) {
					t.Errorf("the log does not say %q: %s", part, log.String())
				}
			}
			if !isClosed(s.Done()) {
				t.Error("not done after a panic")
			}
			if n := len(c.hub.followers); n != 1 {
				t.Errorf("%d followers after a panic, want the other one", n)
			}
		}
	})
}

func TestPanicIsIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var values []any
		var stacks []string
		a := c.subscribe(SubscribeOptions{OnPanic: func(value any, stack []byte) {
			values, stacks = append(values, value), append(stacks, string(stack))
		}})
		a.pause = func(c Change[*entry]) {
			if c.Key == "a" {
				boom(c)
			}
		}
		c.start()
		synctest.Wait()
		a.wantHeard("*b2 |")
		if len(values) != 1 || values[0] != "boom" || !strings.Contains(stacks[0], "tarn.boom") {
			t.Errorf("OnPanic got %v with %s", values, stacks)
		}
		if lag := a.Lag(); lag.Pending != 0 {
			t.Errorf("a change whose function panicked still waits: %+v", lag)
		}
		if log.Len() > 0 {
			t.Errorf("an isolated panic is logged too: %s", log.String())
		}
	})
}

// Objects offered again go to those who want them, as long as they do.
func TestSyncsGoToThoseWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{ResyncPeriod: time.Minute})
		var wants atomic.Bool
		wants.Store(true)
		eager := c.subscribe(SubscribeOptions{Syncs: wants.Load})
		plain := c.subscribe(SubscribeOptions{})
		c.start()
		time.Sleep(90 * time.Second)
		eager.wantHeard("*a1 *b2 | =a1 =b2")
		wants.Store(false)
		time.Sleep(time.Minute)
		eager.wantHeard("*a1 *b2 | =a1 =b2")
		plain.wantHeard("*a1 *b2 |")
	})
}

// A relist confirms what it finds unchanged, to those who want it.
func TestRelistOffersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b", "c")
		c := newCopy(t, r, Options[*entry]{})
		eager := c.subscribe(SubscribeOptions{Syncs: func() bool { return true }})
		plain := c.subscribe(SubscribeOptions{})
		c.start()
		synctest.Wait()
		r.fail(errors.New("down"))
		r.remove("a")
		r.put("b", "new")
		r.compact()
		r.fail(nil)
		time.Sleep(time.Minute)
		eager.wantHeard("*a1 *b2 *c3 | ?a1>a1 ~b2>b5 =c3")
		plain.wantHeard("*a1 *b2 *c3 | ?a1>a1 ~b2>b5")
	})
}

// Every change tells the version of its object, whatever made it: a join, an
// event, a resync, a relist.
func TestEveryChangeHasItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b", "c")
		c := newCopy(t, r, Options[*entry]{ResyncPeriod: 45 * time.Second}).start()
		synctest.Wait()
		a := c.subscribe(SubscribeOptions{Syncs: func() bool { return true }})
		r.put("d", "")
		r.put("b", "new")
		r.remove("d")
		time.Sleep(50 * time.Second)
		r.fail(errors.New("down"))
		r.remove("a")
		r.compact()
		r.fail(nil)
		time.Sleep(30 * time.Second)
		a.wantHeard("*a1 *b2 *c3 | +d4 ~b2>b5 -d4>d6 =a1 =b5 =c3 ?a1>a1 =b5 =c3")
		for _, c := range a.heard {
			if c.Type != marked && c.Version != c.Object.version {
				t.Errorf("%s says version %q", showOne(c), c.Version)
			}
		}
	})
}

// What the store did not take is not told; what it took with a complaint is.
func TestOnlyWhatTheStoreTookIsTold(t *testing.T) {
	for _, test := range []struct {
		refusal error
		want    string
	}{
		{errors.New("disk full"), "|"},
		{ObjectErrors{{Key: "a", Err: errors.New("no index")}}, "| +a1"},
		{fmt.Errorf("wrapped: %w", ObjectErrors{{Key: "a", Err: errors.New("no index")}}), "| +a1"},
	} {
		t.Run(test.refusal.Error(), func(t *testing.T) {
			c := newCopy(t, newRemote(), Options[*entry]{})
			c.hub.markSynced()
			f, err := c.hub.join(0, never)
			if err != nil {
				t.Fatal(err)
			}
			c.store.refuse = func([]Change[*entry]) error { return test.refusal }
			object := &entry{name: "a", version: "1"}
			if err := c.hub.apply([]Change[*entry]{{Type: Add, Key: "a", Object: object, Version: "1"}}, "1"); !errors.Is(err, test.refusal) && err.Error() != test.refusal.Error() {
				t.Errorf("the error is %v", err)
			}
			if got := show(takeAll(f.backlog, handOver)); got != test.want {
				t.Errorf("the follower is given %q, want %q", got, test.want)
			}
		})
	}
}

func TestSubscribeAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a"), Options[*entry]{}).start()
		synctest.Wait()
		_ = c.stop()
		s, err := c.Subscribe(func(Change[*entry]) {}, SubscribeOptions{})
		if !errors.Is(err, ErrStopped) || s != nil {
			t.Errorf("Subscribe returned %v, %v", s, err)
		}
		for change := range c.Changes(t.Context()) {
			t.Errorf("a stopped replica has the change %s", showOne(change))
		}
	})
}

func TestSubscribeNeedsAFunction(t *testing.T) {
	c := newCopy(t, newRemote(), Options[*entry]{})
	if s, err := c.Subscribe(nil, SubscribeOptions{}); err == nil || s != nil || !strings.Contains(err.Error(), "entries: a subscriber needs a function") {
		t.Errorf("Subscribe returned %v, %v", s, err)
	}
}
