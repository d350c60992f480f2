package tarn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestHealthString(t *testing.T) {
	since := time.Date(2026, 1, 2, 14, 2, 11, 0, time.UTC)
	for _, test := range []struct {
		health Health
		want   string
	}{
		{Health{Name: "pods"}, "pods: idle, not synced"},
		{Health{Name: "pods", State: StateListing, Err: errors.New("forbidden"), ErrSince: since}, "pods: listing, not synced, failing since 14:02:11: forbidden"},
		{Health{Name: "pods", State: StateWatching, Synced: true, Version: "184467", Age: 2600 * time.Millisecond}, "pods: watching at version 184467, 3s old"},
		{Health{Name: "pods", State: StateWaiting, Synced: true, Version: "7", Age: time.Hour, BadCount: 3, Err: errors.New("refused"), ErrSince: since}, "pods: waiting at version 7, 1h0m0s old, 3 bad objects, failing since 14:02:11: refused"},
		{Health{Name: "pods", State: StateStopped, Synced: true, Version: "7"}, "pods: stopped at version 7, 0s old"},
	} {
		if got := test.health.String(); got != test.want {
			t.Errorf("it says %q, want %q", got, test.want)
		}
	}
	if got := State(77).String(); got != "state 77" {
		t.Errorf("a state that is none is called %q", got)
	}
}

func TestHealthFresh(t *testing.T) {
	good := Health{State: StateWatching, Synced: true, Age: time.Minute}
	for _, test := range []struct {
		name   string
		change func(*Health)
		want   bool
	}{
		{"as it is", func(*Health) {}, true},
		{"listing anew", func(h *Health) { h.State = StateListing }, true},
		{"never synced", func(h *Health) { h.Synced = false }, false},
		{"failing", func(h *Health) { h.Err = errors.New("refused") }, false},
		{"stopped", func(h *Health) { h.State = StateStopped }, false},
		{"older", func(h *Health) { h.Age++ }, false},
	} {
		h := good
		test.change(&h)
		if got := h.Fresh(time.Minute); got != test.want {
			t.Errorf("%s: fresh is %v", test.name, got)
		}
	}
}

// The health of a replica, as its source goes through good and bad times.
func TestHealthOfAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		r := newRemote("a", "b")
		r.fail(down)
		c := newCopy(t, r, Options[*entry]{})
		if h := c.Health(); h.State != StateIdle || h.Synced || h.Err != nil || !h.LastContact.IsZero() || h.Age != 0 {
			t.Errorf("before the start: %+v", h)
		}
		c.start()
		began := time.Now()
		time.Sleep(time.Minute)
		h := c.Health()
		if h.State != StateWaiting || h.Synced || !errors.Is(h.Err, down) || !h.ErrSince.Equal(began) || h.Failures < 2 || h.Fresh(time.Hour) {
			t.Errorf("while the source is down: %+v", h)
		}

		r.fail(nil)
		if err := c.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h = c.Health()
		if h.State != StateWatching || !h.Synced || h.Err != nil || h.Failures != 0 || h.Version != "2" || h.Age != 0 || h.Lists["start"] != 1 || h.Watches != 1 || h.Events != 0 || !h.WatchSince.Equal(time.Now()) {
			t.Errorf("while it works: %+v", h)
		}
		h.Lists["start"] = 99
		if c.Health().Lists["start"] != 1 {
			t.Error("what Health returned is not the caller's own")
		}

		time.Sleep(10 * time.Second)
		failed := h.AllFailures
		if failed < 2 {
			t.Errorf("the recovery took back that there were failures: %d are left", failed)
		}
		if h = c.Health(); h.Age != 10*time.Second || h.WatchAge != 10*time.Second || !h.Fresh(10*time.Second) || h.Fresh(9*time.Second) {
			t.Errorf("after ten quiet seconds: %+v", h)
		}
		r.bookmark()
		r.put("a", "new")
		synctest.Wait()
		if h = c.Health(); h.Age != 0 || h.Version != "4" || h.Events != 2 {
			t.Errorf("after a bookmark and an event: %+v", h)
		}

		r.fail(down)
		broke := time.Now()
		time.Sleep(10 * time.Minute)
		if h = c.Health(); !errors.Is(h.Err, down) || !h.ErrSince.Equal(broke) || !h.WatchSince.IsZero() || h.WatchAge != 0 || h.AllFailures != failed+int64(h.Failures) || h.Age != 10*time.Minute || h.Version != "4" || h.Fresh(time.Hour) {
			t.Errorf("after it broke: %+v", h)
		}
		_ = c.stop()
		if h = c.Health(); h.State != StateStopped || !h.Synced || h.Fresh(time.Hour) {
			t.Errorf("after the end: %+v", h)
		}
	})
}

// A failure before the first sync stays readable for callers that wait for it, even
// when a stream opens in between.
func TestFirstFailureStaysReadable(t *testing.T) {
	m := newMonitor("entries", realClock{})
	m.failed(errors.New("no end of the initial events"))
	m.opened()
	m.contacted("", 1)
	if h := m.health(); h.Err == nil || h.Failures != 1 {
		t.Errorf("before the first sync a word ended the trouble: %+v", h)
	}
	m.listed("start", "5")
	if h := m.health(); h.Err != nil || h.Failures != 0 {
		t.Errorf("the first sync did not end the trouble: %+v", h)
	}
	m.stopped()
	m.stopped()
}

// setBack is a clock that is set back by an hour after each look.
type setBack struct {
	realClock
	looks int
}

func (c *setBack) Now() time.Time {
	c.looks++
	return time.Unix(1_800_000_000, 0).Add(-time.Duration(c.looks) * time.Hour)
}

func TestAgeIsNeverNegative(t *testing.T) {
	m := newMonitor("pods", &setBack{})
	m.contacted("7", 1)
	if age := m.health().Age; age < 0 {
		t.Errorf("the last word will be heard in %v", -age)
	}
}
