package tarn

import (
	"maps"
	"testing"
	"testing/synctest"
)

// Changes gives the state and then what changes, and ends.
func TestChanges(t *testing.T) {
	for _, end := range []struct {
		name string
		end  func(c *copying, cancel func())
	}{
		{"with its context", func(_ *copying, cancel func()) { cancel() }},
		{"when the replica stops", func(c *copying, _ func()) { c.cancel() }},
	} {
		t.Run(end.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRemote("a", "b")
				c := newCopy(t, r, Options[*entry]{}).start()
				ctx, cancel := cancelable(t)
				var got []Change[*entry]
				done := make(chan struct{})
				go func() {
					defer close(done)
					for change := range c.Changes(ctx) {
						got = append(got, change)
					}
				}()
				synctest.Wait()
				r.put("a", "new")
				r.remove("b")
				synctest.Wait()
				end.end(c, cancel)
				<-done
				if want := "*a1 *b2 ~a1>a3 -b2>b4"; show(got) != want {
					t.Errorf("the changes were %s, want %s", show(got), want)
				}
				synctest.Wait()
				if n := len(c.fanout.followers); n != 0 {
					t.Errorf("%d followers are left", n)
				}
			})
		})
	}
}

// However much is pending, the end is the end.
func TestChangesEndsAtOnce(t *testing.T) {
	for _, end := range []struct {
		name string
		end  func(c *copying, cancel func())
	}{
		{"with its context", func(_ *copying, cancel func()) { cancel() }},
		{"when the replica stops", func(c *copying, _ func()) { _ = c.stop() }},
	} {
		t.Run(end.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCopy(t, newRemote("a", "b", "c"), Options[*entry]{}).start()
				synctest.Wait()
				ctx, cancel := cancelable(t)
				var got []Change[*entry]
				for change := range c.Changes(ctx) {
					got = append(got, change)
					end.end(c, cancel)
				}
				if show(got) != "*a1" {
					t.Errorf("after the end the loop went on: %s", show(got))
				}
			})
		})
	}
}

func TestLeavingChangesLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a", "b"), Options[*entry]{}).start()
		synctest.Wait()
		changes := c.Changes(t.Context())
		for range 2 { // each loop starts over
			n := 0
			for range changes {
				if n++; len(c.fanout.followers) != 1 {
					t.Errorf("%d followers within the loop", len(c.fanout.followers))
				}
				break
			}
			if n != 1 || len(c.fanout.followers) != 0 {
				t.Errorf("%d changes, %d followers after the loop", n, len(c.fanout.followers))
			}
		}
		func() {
			defer func() { _ = recover() }()
			for range changes {
				panic("in the loop")
			}
		}()
		if n := len(c.fanout.followers); n != 0 {
			t.Errorf("%d followers after a panic in the loop", n)
		}
	})
}

// A loop that is slow sees less, and misses nothing.
func TestSlowChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{}).start()
		synctest.Wait()
		ctx, cancel := cancelable(t)
		has := map[Key]*entry{}
		n := 0
		for change := range c.Changes(ctx) {
			if n++; n == 2 {
				for range 5 * defaultBound {
					r.put("a", "")
				}
				r.remove("b")
				synctest.Wait()
			}
			if change.Type != Add && has[change.Key] != change.Old {
				t.Errorf("%s: the loop was last given %v", showOne(change), has[change.Key])
			}
			has[change.Key] = change.Object
			if change.Type == Delete {
				delete(has, change.Key)
			}
			if maps.Equal(has, r.state()) {
				cancel()
			}
		}
		if n != 4 {
			t.Errorf("%d changes were given; two, and one for each key, would do", n)
		}
	})
}
