package tarn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitForWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{}).start()
		synctest.Wait()
		ended, cancel := cancelable(t)
		cancel()
		for _, v := range []Version{"0", "1", "2", "002"} {
			if err := c.WaitFor(ended, v); err != nil {
				t.Errorf("version %s is there; WaitFor returned %v", v, err)
			}
		}
	})
}

// Read your own write: after the wait, reads show it.
func TestWaitForAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		c := newCopy(t, r, Options[*entry]{})
		wait := func(v Version) chan error {
			waited := make(chan error, 1)
			go func() { waited <- c.WaitFor(t.Context(), v) }()
			return waited
		}
		early, late, bookmarked := wait("1"), wait("2"), wait("3")
		synctest.Wait()
		c.start()
		if err := <-early; err != nil || c.Version() != "1" {
			t.Errorf("waiting for what the first list brings: %v, and the copy is at %q", err, c.Version())
		}
		synctest.Wait()
		if len(late) > 0 || len(bookmarked) > 0 {
			t.Fatal("a wait ended before its version was there")
		}
		v := r.put("a", "new")
		if err := <-late; err != nil {
			t.Error(err)
		}
		if e, _ := c.Get("a"); e == nil || e.version != v {
			t.Errorf("after the wait for %s the copy shows %v", v, e)
		}
		synctest.Wait()
		if len(bookmarked) > 0 {
			t.Fatal("a wait ended before its version was there")
		}
		r.bookmark()
		if err := <-bookmarked; err != nil {
			t.Error(err)
		}
	})
}

// What was waited for is in Health too, although the loop has not yet recorded when
// that arrived.
func TestHealthAfterAWait(t *testing.T) {
	c := newCopy(t, newRemote(), Options[*entry]{})
	for _, v := range []Version{"1", "2"} {
		if err := c.fanout.apply(c.fanout.sections[0], nil, At(v)); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitFor(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if h := c.Health(); h.Version != v {
			t.Errorf("after the wait for %s Health has version %q", v, h.Version)
		}
	}
}

func TestWaitForWhatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{})
		err := c.WaitFor(within(t, time.Second), "7")
		wantError(t, err, context.DeadlineExceeded, "entries: version 7 not reached: the replica was not started")
		c.start()
		err = c.WaitFor(within(t, time.Second), "7")
		wantError(t, err, context.DeadlineExceeded, `entries: version 7 not reached, the copy is at "2"`)
		down := errors.New("the cable is cut")
		r.fail(down)
		err = c.WaitFor(within(t, time.Minute), "7")
		wantError(t, err, down, `entries: version 7 not reached, the copy is at "2": entries: `)
		wantError(t, err, context.DeadlineExceeded, "")
		if n := len(c.fanout.waitersOf(everywhere).waiting); n != 0 {
			t.Errorf("%d waits are remembered after they were given up", n)
		}
	})
}

func TestWaitForOpaqueVersions(t *testing.T) {
	t.Run("asked for", func(t *testing.T) {
		c := newCopy(t, newRemote(), Options[*entry]{})
		for _, v := range []Version{"", "abc", "12a", "-1"} {
			wantError(t, c.WaitFor(t.Context(), v), ErrOpaqueVersion, fmt.Sprintf("entries: waiting for version %q", v))
		}
	})
	t.Run("of the source", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRemote()
			r.versionless = true
			r.put("a", "")
			c := newCopy(t, r, Options[*entry]{})
			early := make(chan error)
			go func() { early <- c.WaitFor(t.Context(), "7") }()
			synctest.Wait()
			c.start()
			wantError(t, <-early, ErrOpaqueVersion, "entries: waiting for version 7")
			wantError(t, c.WaitFor(t.Context(), "7"), ErrOpaqueVersion, "entries: waiting for version 7")
			if c.Len() != 1 {
				t.Errorf("%d objects", c.Len())
			}
		})
	})
}

// A write to the store by somebody else does not bring the copy to its version.
func TestWaitForIsNotMovedByForeignWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a"), Options[*entry]{})
		wantError(t, c.WaitFor(within(t, time.Second), "1"), context.DeadlineExceeded, "not started")
		c.start()
		synctest.Wait()
		if err := c.store.Apply(nil, At("900")); err != nil {
			t.Fatal(err)
		}
		wantError(t, c.WaitFor(within(t, time.Second), "900"), context.DeadlineExceeded, `the copy is at "1"`)
		if v := c.Version(); v != "1" {
			t.Errorf("the copy is at %s", v)
		}
	})
}

// That a content has no version is known only when the first state is complete:
// earlier waits end then.
func TestSyncWithoutVersionEndsWaits(t *testing.T) {
	h := newCopy(t, newRemote(), Options[*entry]{}).fanout
	_, wait, err := h.await(everywhere, "7")
	if err != nil || isClosed(wait) {
		t.Fatalf("before the first state a wait ended: %v", err)
	}
	h.markSynced(h.sections[0])
	if !isClosed(wait) {
		t.Error("after the first state without a version it still waits")
	}
	_, _, err = h.await(everywhere, "7")
	wantError(t, err, ErrOpaqueVersion, "the copy is at")
}

func TestWaitForEndsWithTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		c := newCopy(t, r, Options[*entry]{}).start()
		waited := make(chan error)
		go func() { waited <- c.WaitFor(t.Context(), "7") }()
		synctest.Wait()
		_ = c.stop()
		wantError(t, <-waited, ErrStopped, "entries: waiting for version 7")
		wantError(t, c.WaitFor(t.Context(), "7"), ErrStopped, "entries: waiting for version 7")
		if err := c.WaitFor(t.Context(), "1"); err != nil {
			t.Errorf("what was reached before the end stays so; WaitFor returned %v", err)
		}
	})
}

// Each of many waits ends at its own version, none early.
func TestManyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const versions, each = 200, 5
		r := newRemote()
		c := newCopy(t, r, Options[*entry]{}).start()
		reached := make(chan int, versions*each)
		for i := range versions * each {
			want := i%versions + 2
			go func() {
				if err := c.WaitFor(t.Context(), Version(strconv.Itoa(want))); err != nil {
					t.Error(err)
				}
				if v := c.Version(); v.OlderThan(Version(strconv.Itoa(want))) {
					t.Errorf("a wait for %d ended at %s", want, v)
				}
				reached <- want
			}()
		}
		synctest.Wait()
		for v := 2; v < versions+2; v++ {
			r.put("a", "")
			synctest.Wait()
			for range each {
				if got := <-reached; got != v {
					t.Fatalf("at version %d a wait for %d ended", v, got)
				}
			}
			if len(reached) > 0 {
				t.Fatalf("at version %d a wait for %d ended", v, <-reached)
			}
		}
		if n := len(c.fanout.waitersOf(everywhere).waiting); n != 0 {
			t.Errorf("%d waits are remembered", n)
		}
	})
}

// A wait for all sections outlives that one is added, and lasts until it has been read.
func TestWaitForWhileASectionIsAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, north, _ := twoLakes(t, Options[*entry]{})
		c.start()
		synctest.Wait()
		waiting := func(v Version) chan error {
			waited := make(chan error, 1)
			go func() { waited <- c.WaitFor(within(t, time.Hour), v) }()
			synctest.Wait()
			return waited
		}
		before := waiting("3")
		east := newRemote("east/a", "east/b", "east/c")
		east.fail(errUnreachable)
		if err := c.AddSection(sectionOf("east", east)); err != nil {
			t.Fatal(err)
		}
		after := waiting("3")
		north.put("north/b", "")
		north.put("north/c", "") // 3
		time.Sleep(time.Second)
		if len(before)+len(after) > 0 {
			t.Fatal("it has waited before the east was read")
		}
		east.fail(nil)
		settle()
		if err := errors.Join(<-before, <-after); err != nil {
			t.Error(err)
		}
	})
}

// If the section that lacks the version is removed, the others have reached it.
func TestWaitForWhileASectionIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, south := twoLakes(t, Options[*entry]{})
		c.start()
		synctest.Wait()
		waited := make(chan error, 1)
		go func() { waited <- c.WaitFor(within(t, time.Second), south.version()) }()
		synctest.Wait()
		if err := errors.Join(c.RemoveSection("north"), <-waited); err != nil {
			t.Error(err)
		}
	})
}

// A section that has no versions is known to have none once it has been read.
func TestWaitForWhileASectionWithoutVersionsIsAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := twoLakes(t, Options[*entry]{})
		c.start()
		synctest.Wait()
		east := newRemote("east/a")
		east.versionless = true
		if err := c.AddSection(sectionOf("east", east)); err != nil {
			t.Fatal(err)
		}
		wantError(t, c.WaitFor(within(t, time.Minute), "1"), ErrOpaqueVersion, "lakes")
	})
}
