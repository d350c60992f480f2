package shards

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// balanced waits until every process has its part of the objects, within a minute.
func (c *cluster) balanced(group ...*process) {
	c.t.Helper()
	for range 3_000 {
		if c.settled(group) && c.unowned(group...) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, p := range group {
		c.t.Logf("%s: %+v", p.name, p.member.Health())
	}
	c.t.Fatal("the group does not settle")
}

// Members join, leave, die and are cut off. Everything has one owner, with the objects in
// its copy, and the time without one is bounded.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		var group []*process
		began := time.Now()
		for range 4 {
			group = append(group, c.start(0))
		}
		c.balanced(group...)
		t.Logf("4 members: everything has an owner after %v", time.Since(began))
		for _, p := range group {
			if share := p.member.Health().Owned.Share(); math.Abs(share-0.25) > 0.001 {
				t.Errorf("%s has %f of all", p.name, share)
			}
		}

		lost := func(of []*process) (all int64) {
			for _, p := range of {
				all += p.member.Health().Lost
			}
			return all
		}
		before := lost(group) // one that was there first had everything for a moment
		fifth := c.start(0)
		group = append(group, fifth)
		gap := c.measure(func() { c.balanced(group...) }, group...)
		t.Logf("4 → 5: an object has no owner for at most %v", gap)
		if gap > 250*time.Millisecond {
			t.Error("a member that joins leaves objects without owner")
		}
		if moved := lost(group[:4]) - before; moved > slotCount/5+12 {
			t.Errorf("%d slots were lost by four members; a fifth needs %d", moved, slotCount/5)
		}

		gap = c.measure(func() {
			if err := group[1].member.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		}, group...)
		t.Logf("5 → 4, one leaves: an object has no owner for at most %v", gap)
		if gap > 250*time.Millisecond {
			t.Error("a member that leaves leaves objects without owner")
		}
		group[1].end()
		group = append(group[:1:1], group[2:]...)

		ended := group[3]
		gap = c.measure(func() { ended.end(); c.balanced(group[:3]...) }, group[:3]...)
		t.Logf("4 → 3, one ends without leaving first: an object has no owner for at most %v", gap)
		if gap > 2*time.Second {
			t.Error("a member that ends leaves objects without owner")
		}
		group = group[:3]

		killed := group[0]
		gap = c.measure(func() { killed.kill(); c.balanced(group[1:]...) }, group[1:]...)
		t.Logf("3 → 2, one is killed: an object has no owner for at most %v", gap)
		if gap > testDuration+2*time.Second {
			t.Error("a member that is killed leaves objects without owner")
		}
		group = group[1:]

		// One that is cut off stops by itself, and comes back as somebody else.
		gap = c.measure(func() {
			group[0].mu.Lock()
			group[0].cut = true
			group[0].mu.Unlock()
			time.Sleep(3 * testDuration)
		}, group...)
		t.Logf("one is cut off: an object has no owner for %v", gap)
		if gap < testMargin || gap > testMargin+2*time.Second {
			t.Errorf("that is not the margin, %v", testMargin)
		}
		if owned := group[0].member.Health().Owned; len(owned.Ranges()) > 0 {
			t.Errorf("a member that is cut off owns %s", owned)
		}
		group[0].mu.Lock()
		group[0].cut = false
		group[0].mu.Unlock()
		time.Sleep(testDuration)
		c.balanced(group...)
		if h := group[0].member.Health(); h.Fenced != 1 || h.Members != 2 || h.Err != nil {
			t.Errorf("%+v", h)
		}
		if group[0].gained < 2 {
			t.Error("a member was not told that it gained objects again")
		}

		// The last one has nobody to hand over to.
		group[0].end()
		c.balanced(group[1])
		if err := group[1].member.Leave(t.Context()); err != nil {
			t.Error(err)
		}
		group[1].end()
		if c.overlaps > 0 {
			t.Errorf("%d overlaps", c.overlaps)
		}
	})
}

// A planned hand-over waits for work that has begun, however long it takes.
func TestHandOverWaitsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		first := c.start(0)
		c.balanced(first)
		var ends []func()
		for _, object := range c.objects {
			if done, ok := first.member.Begin(object); ok {
				ends = append(ends, done)
			}
		}
		second := c.start(0)
		time.Sleep(time.Minute)
		if owned := second.member.Health().Owned; len(owned.Ranges()) > 0 && c.overlaps > 0 {
			t.Errorf("the second member has %s while the first works on it", owned)
		}
		for _, object := range c.objects {
			if second.member.Owns(object) {
				t.Errorf("%s is owned by the second member while the first works on it", object.Name)
			}
		}
		for _, done := range ends {
			done()
			done() // twice is once
		}
		c.balanced(first, second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.member.Leave(ctx); err == nil {
			t.Error("Leave returned before anything was handed over")
		}
		second.end()
		first.end()
	})
}

// A member whose first Lease was created, though it never heard so, counts from then on as
// others do, and not from when it finds the Lease.
func TestJoinWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		first := c.start(0)
		c.balanced(first)
		second := c.run(&process{loseFirst: true})
		time.Sleep(testDuration - 3*time.Second)
		second.set(false, false)
		for second.member.Health().Owned.Share() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		second.set(true, false)
		for cutAt := time.Now(); time.Since(cutAt) < 2*testDuration; time.Sleep(50 * time.Millisecond) {
			for _, object := range c.objects {
				if first.member.Owns(object) && second.member.Owns(object) {
					t.Fatalf("%v after the second was cut off, both own %s", time.Since(cutAt), object.Name)
				}
			}
		}
		c.balanced(first)
	})
}

// A Lease that somebody has made, with the label of the group and not the name of a member's,
// is no member.
func TestForeignLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		for i, holder := range []*string{nil, ptr.To("ghost")} {
			if err := c.server.Put(&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: fmt.Sprint("copy-", i), Labels: map[string]string{groupLabel: "test"}},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: holder, LeaseDurationSeconds: ptr.To[int32](3600)},
			}); err != nil {
				t.Fatal(err)
			}
		}
		group := []*process{c.start(0), c.start(0)}
		c.balanced(group...)
		if h := group[0].member.Health(); h.Members != 2 {
			t.Errorf("%+v", h)
		}
	})
}

// A process that is cut off for less than Duration refuses work meanwhile, and keeps its
// objects: it is told of those that it refused, because whoever asked has given them up.
func TestRefusedWorkIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		only := c.start(0)
		c.balanced(only)
		only.stopWorking()
		before := only.gained
		only.set(true, false)
		time.Sleep(testDuration - testMargin + time.Second)
		refused := c.objects[7]
		if _, ok := only.member.Begin(refused); ok {
			t.Fatal("work begins after the Lease is no longer valid")
		}
		only.set(false, false)
		time.Sleep(testDuration)
		if h := only.member.Health(); h.Fenced != 0 || !only.member.Owns(refused) {
			t.Fatalf("%+v", h)
		}
		if only.gained != before+1 {
			t.Errorf("the process was told %d times of more objects", only.gained-before)
		}
		time.Sleep(testDuration)
		if h := only.member.Health(); only.gained != before+1 || h.Gained != slotCount {
			t.Errorf("told %d times, %+v", only.gained-before, h)
		}
	})
}
