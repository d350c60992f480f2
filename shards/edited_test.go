package shards

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

// leases are those whose names begin with a text.
func (c *cluster) leases(name string) (found []coordinationv1.Lease) {
	c.t.Helper()
	client, err := coordination.NewForConfig(c.server.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := client.Leases("work").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, lease := range all.Items {
		if strings.HasPrefix(lease.Name, name) {
			found = append(found, lease)
		}
	}
	return found
}

// table is the Lease with the name of the group.
func (c *cluster) table() *coordinationv1.Lease {
	c.t.Helper()
	for _, lease := range c.leases("test") {
		if lease.Name == "test" {
			return &lease
		}
	}
	c.t.Fatal("the group has no Lease")
	return nil
}

// Somebody deletes the Lease of the member that balances, while it works on objects for less
// than the margin and another one joins: nobody else owns them meanwhile.
func TestLeaseDeletedDuringWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		first := c.start(0)
		c.balanced(first)
		time.Sleep(testDuration + time.Second)
		first.stopWorking()
		var ends []func()
		for _, object := range c.objects {
			done, ok := first.member.Begin(object)
			if !ok {
				t.Fatalf("%s has no owner", object.Name)
			}
			ends = append(ends, done)
		}
		for _, lease := range c.leases("test-p00") {
			if err := c.server.Delete(&lease); err != nil {
				t.Fatal(err)
			}
		}
		second := c.start(0)
		for began := time.Now(); time.Since(began) < testMargin; time.Sleep(10 * time.Millisecond) {
			for _, object := range c.objects {
				if second.member.Owns(object) {
					t.Fatalf("after %v %s is owned by the second member, while the first works on it", time.Since(began), object.Name)
				}
			}
		}
		if h := first.member.Health(); h.Fenced != 1 {
			t.Errorf("%+v", h)
		}
		for _, end := range ends {
			end()
		}
		time.Sleep(2 * testDuration)
		c.balanced(first, second)
	})
}

// Somebody edits the Lease of a member: nobody takes it for dead sooner than it stops, and it
// writes what it was again.
func TestLeaseEdited(t *testing.T) {
	edits := map[string]func(lease *coordinationv1.Lease){
		"shorter":     func(lease *coordinationv1.Lease) { lease.Spec.LeaseDurationSeconds = ptr.To[int32](1) },
		"no duration": func(lease *coordinationv1.Lease) { lease.Spec.LeaseDurationSeconds = nil },
		"negative":    func(lease *coordinationv1.Lease) { lease.Spec.LeaseDurationSeconds = ptr.To[int32](-5) },
		"no holder":   func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = nil },
		"no label":    func(lease *coordinationv1.Lease) { lease.Labels = nil },
		"leaving":     func(lease *coordinationv1.Lease) { lease.Annotations = map[string]string{leavingAnnotation: "true"} },
	}
	if testsize.Of(1, 0) == 0 { // two members balance meanwhile, by many requests
		delete(edits, "no label")
		delete(edits, "no holder")
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 60)
				defer c.close()
				group := []*process{c.start(0), c.start(0)}
				c.balanced(group...)
				first := group[0]
				first.stopWorking()
				group[1].stopWorking()
				var held []*corev1.ConfigMap
				for _, object := range c.objects {
					if done, ok := first.member.Begin(object); ok {
						held = append(held, object)
						defer done()
					}
				}
				for _, lease := range c.leases("test-p00") {
					edit(&lease)
					if err := c.server.Put(&lease); err != nil {
						t.Fatal(err)
					}
				}
				for began := time.Now(); time.Since(began) < testMargin; time.Sleep(50 * time.Millisecond) {
					for _, object := range held {
						if group[1].member.Owns(object) {
							t.Fatalf("after %v %s is owned by the second member, while the first works on it", time.Since(began), object.Name)
						}
					}
				}
				time.Sleep(testDuration)
				if h := first.member.Health(); h.Fenced != 0 || h.Err != nil {
					t.Errorf("%+v", h)
				}
			})
		})
	}
}

// Somebody deletes the Lease of the group while members work, and one that never had the
// table starts at the same moment and writes an empty one: nobody else gets the objects
// before the work on them has ended, and the copies keep them.
func TestTableDeletedDuringWork(t *testing.T) {
	for start := range 12 {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 60)
				defer c.close()
				group := []*process{c.start(0), c.start(0)}
				c.balanced(group...)
				worker := group[start%2]
				worker.stopWorking()
				ends := map[*corev1.ConfigMap]func(){}
				for _, object := range c.objects {
					if done, ok := worker.member.Begin(object); ok {
						ends[object] = done
					}
				}
				begin := func() { group = append(group, c.start(0)) }
				if start >= 6 {
					begin() // about when the new member looks for the table
					time.Sleep(time.Duration(start-6) * c.latency)
				}
				if err := c.server.Delete(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "test"}}); err != nil {
					t.Fatal(err)
				}
				if start < 6 {
					time.Sleep(time.Duration(start/2) * c.latency)
					begin()
				}
				for began := time.Now(); time.Since(began) < 3*testDuration; time.Sleep(10 * time.Millisecond) {
					for object := range ends {
						for _, p := range group {
							if p != worker && p.member.Owns(object) {
								t.Fatalf("after %v %s owns %s, while %s works on it", time.Since(began), p.name, object.Name, worker.name)
							}
						}
						if _, held := worker.copied.Get(tarn.Key("work/" + object.Name)); !held {
							t.Fatalf("after %v %s works on %s, and its copy does not have it", time.Since(began), worker.name, object.Name)
						}
					}
				}
				for _, end := range ends {
					end()
				}
				c.balanced(group...)
			})
		})
	}
}

// Somebody deletes the Lease of the group, or makes its table unreadable, while members run:
// every member keeps its slots, and when there is a table again a new member gets its part.
func TestTableEdited(t *testing.T) {
	for name, edit := range map[string]func(c *cluster, table *coordinationv1.Lease) error{
		"deleted": func(c *cluster, table *coordinationv1.Lease) error { return c.server.Delete(table) },
		"unreadable": func(c *cluster, table *coordinationv1.Lease) error {
			table = table.DeepCopy()
			table.Annotations[tableAnnotation] = "[{}]"
			return c.server.Put(table)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 60)
				defer c.close()
				group := []*process{c.start(0), c.start(0)}
				c.balanced(group...)
				before := c.table()
				if err := edit(c, before); err != nil {
					t.Fatal(err)
				}
				if gap := c.measure(func() { time.Sleep(3 * testDuration) }, group...); gap > 0 {
					t.Errorf("objects have no owner for %v", gap)
				}
				group = append(group, c.start(0))
				time.Sleep(testDuration)
				if name == "unreadable" {
					for i, p := range group {
						if h := p.member.Health(); h.Owned.Share() > 0 != (i < 2) {
							t.Errorf("member %d: %+v", i, h)
						}
					}
					if err := c.server.Put(before); err != nil {
						t.Fatal(err)
					}
					time.Sleep(testDuration)
				}
				c.balanced(group...)
			})
		})
	}
}

// Somebody removes the label of a member's Lease, so that copies lose it, and the member
// writes it again: it stays a member, and keeps what it works on.
func TestLeaseSeenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		group := []*process{c.start(0), c.start(0)}
		c.balanced(group...)
		for _, lease := range c.leases("test-p") {
			lease.Labels = nil
			if err := c.server.Put(&lease); err != nil {
				t.Fatal(err)
			}
		}
		if gap := c.measure(func() { time.Sleep(4 * testDuration) }, group...); gap > 250*time.Millisecond { // each sees itself alone for a while, and they hand over
			t.Errorf("objects have no owner for %v", gap)
		}
		for _, p := range group {
			if h := p.member.Health(); h.Members != 2 || h.Fenced != 0 || h.Lost > slotCount/2 || h.Err != nil {
				t.Errorf("%s: %+v", p.name, h)
			}
		}
	})
}

// Somebody replaces the Leases of members, as from a backup: each member joins again at
// once, and does not try to renew a Lease that is not its own.
func TestLeasesReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		group := []*process{c.start(0), c.start(0)}
		c.balanced(group...)
		for _, lease := range c.leases("test-p") {
			replaced := lease.DeepCopy()
			replaced.UID, replaced.ResourceVersion = "", ""
			if err := c.server.Delete(&lease); err != nil {
				t.Fatal(err)
			}
			if err := c.server.Put(replaced); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(testDuration / 2)
		for _, p := range group {
			if h := p.member.Health(); h.Fenced != 1 {
				t.Errorf("%s: %+v", p.name, h)
			}
		}
		time.Sleep(2 * testDuration)
		c.balanced(group...)
		if found := c.leases("test-p"); len(found) != len(group) {
			t.Errorf("%d Leases of %d members", len(found), len(group))
		}
	})
}

// Somebody removes the label of the group's Lease: it gets that again, and members go on.
func TestTableWithoutLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		group := []*process{c.start(0), c.start(0)}
		c.balanced(group...)
		table := c.table()
		table.Labels = map[string]string{"other": "kept"}
		if err := c.server.Put(table); err != nil {
			t.Fatal(err)
		}
		if gap := c.measure(func() { time.Sleep(testDuration) }, group...); gap > 0 {
			t.Errorf("objects have no owner for %v", gap)
		}
		group = append(group, c.start(0))
		time.Sleep(testDuration)
		c.balanced(group...)
		if labels := c.table().Labels; labels[groupLabel] != "test" || labels["other"] != "kept" {
			t.Error(labels)
		}
	})
}

// A Lease of the group's name belongs to somebody else: it is left alone and reported, and
// members begin when it is gone.
func TestNameOfGroupTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		foreign := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "test"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a leader")},
		}
		if err := c.server.Put(foreign); err != nil {
			t.Fatal(err)
		}
		group := []*process{c.start(0), c.start(0)}
		time.Sleep(3 * testDuration)
		for _, p := range group {
			if h := p.member.Health(); h.Owned.Share() > 0 || h.Err == nil || !strings.Contains(h.Err.Error(), "work/test is not one of this group") {
				t.Errorf("%s: %+v", p.name, h)
			}
		}
		found := c.table()
		if ptr.Deref(found.Spec.HolderIdentity, "") != "a leader" || len(found.Labels)+len(found.Annotations) > 0 {
			t.Errorf("%+v", found)
		}
		if err := c.server.Delete(found); err != nil {
			t.Fatal(err)
		}
		c.balanced(group...)
		time.Sleep(testDuration)
		if h := group[0].member.Health(); h.Err != nil {
			t.Errorf("%+v", h)
		}
	})
}
