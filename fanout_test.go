package tarn

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A subscriber that joins between the first state and its end sees both.
func TestJoiningBeforeTheEndOfTheFirstState(t *testing.T) {
	h := newCopy(t, newRemote(), Options[*entry]{}).fanout
	a := &entry{name: "a", version: "1"}
	if err := h.apply(h.sections[0], []Change[*entry]{{Type: Add, Initial: true, Key: "a", Object: a, Version: "1"}}, At("1")); err != nil {
		t.Fatal(err)
	}
	f, err := h.join(0, never)
	if err != nil {
		t.Fatal(err)
	}
	h.markSynced(h.sections[0])
	h.markSynced(h.sections[0])
	if got := show(takeAll(f.backlog, handOver)); got != "*a1 |" {
		t.Errorf("the follower is given %s", got)
	}
}

// Objects offered again go to the subscribers that want them, as long as they do.
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

// A relist confirms what it finds unchanged, to the subscribers that want it.
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

// Subscribers do not receive what the store did not take; they receive what it took
// with a complaint.
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
			c.fanout.markSynced(c.fanout.sections[0])
			f, err := c.fanout.join(0, never)
			if err != nil {
				t.Fatal(err)
			}
			c.store.refuse = func([]Change[*entry]) error { return test.refusal }
			object := &entry{name: "a", version: "1"}
			if err := c.fanout.apply(c.fanout.sections[0], []Change[*entry]{{Type: Add, Key: "a", Object: object, Version: "1"}}, At("1")); !errors.Is(err, test.refusal) && err.Error() != test.refusal.Error() {
				t.Errorf("the error is %v", err)
			}
			if got := show(takeAll(f.backlog, handOver)); got != test.want {
				t.Errorf("the follower is given %q, want %q", got, test.want)
			}
		})
	}
}
