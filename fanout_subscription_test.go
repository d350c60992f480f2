package tarn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// Every subscriber, early or late, sees the whole state first, then its end, then what changes.
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

// What a subscriber receives does not depend on what others have received.
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
				if n := len(c.fanout.followers); n != 0 {
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
		if n := len(c.fanout.followers); n != 0 {
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
