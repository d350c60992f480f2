package tarn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/internal/adapter"
)

func TestReplicaNeedsSourceAndStore(t *testing.T) {
	for _, test := range []struct {
		source Source[*entry]
		store  ReadStore[*entry]
		want   string
	}{
		{nil, newPlainStore(), `"entries" has source false, store true`},
		{newRemote(), nil, `"entries" has source true, store false`},
		{nil, nil, `"entries" has source false, store false`},
	} {
		r, err := NewReplica(test.source, test.store, Options[*entry]{Name: "entries"})
		if r != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("NewReplica returned %v, %v; want an error with %q", r, err, test.want)
		}
	}
}

func TestReplicaRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a"), Options[*entry]{}).start()
		synctest.Wait()
		wantOnce := func() {
			t.Helper()
			if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "entries: the replica has been started before; make a new one") {
				t.Errorf("a second Run returned %v", err)
			}
		}
		wantOnce()
		if h := c.Health(); h.State != StateWatching {
			t.Errorf("the second Run disturbed the first: %v", h)
		}
		_ = c.stop()
		wantOnce()
	})
}

func TestRunSaysWhyItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a"), Options[*entry]{})
		why := errors.New("the lights went out")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Minute)
			cancel(why)
		}()
		if err := c.Run(ctx); !errors.Is(err, why) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// Done comes last of all, also after a subscriber that takes long.
func TestDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a"), Options[*entry]{})
		open := func() bool {
			synctest.Wait()
			select {
			case <-c.Done():
				return false
			default:
				return true
			}
		}
		release := make(chan struct{})
		if _, err := c.Subscribe(func(Change[*entry]) { <-release }, SubscribeOptions{}); err != nil {
			t.Fatal(err)
		}
		if !open() {
			t.Error("Done is closed before Run")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = c.Run(ctx) }()
		if !open() {
			t.Error("Done is closed while Run still runs")
		}
		cancel()
		if !open() {
			t.Error("Done is closed while a subscriber is at work")
		}
		close(release)
		if open() {
			t.Error("Done is open after the end")
		}
	})
}

// Reads answer from one state, before, while and after the replica runs.
func TestReplicaReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{})
		want := func(state string, v Version) {
			t.Helper()
			synctest.Wait()
			var all []string
			for key, e := range c.All() {
				if got, ok := c.Get(key); !ok || got != e {
					t.Errorf("Get(%q) is %v, %v; All shows %v", key, got, ok, e)
				}
				all = append(all, e.String())
			}
			if got := strings.Join(all, " "); got != state || c.Version() != v || c.Len() != len(all) {
				t.Errorf("the copy holds %q (%d) at %q, want %q at %q", got, c.Len(), c.Version(), state, v)
			}
		}
		want("", "")
		c.start()
		want("a1 b2", "2")
		if _, ok := c.Get("c"); ok {
			t.Error("it has what nobody wrote")
		}
		r.put("a", "new")
		r.remove("b")
		want("a3", "4")
		r.bookmark()
		want("a3", "5")
		_ = c.stop()
		r.put("c", "")
		want("a3", "5")
	})
}

func TestConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{Name: "before"})
		s, err := c.Subscribe(boom, SubscribeOptions{Inline: true})
		if err != nil {
			t.Fatal(err)
		}
		err = AdaptReplica(adapter.Key{}, c.Replica).Configure(func(o *Options[*entry]) {
			if o.Name != "before" || o.Clock != nil || o.Logger != nil || o.Delay != nil {
				t.Errorf("change is shown %+v, not what was given", o)
			}
			o.Name = "after"
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			o.OnError = nil
			o.Transform = func(e *entry) (*entry, error) {
				kept := *e
				kept.text = "transformed"
				return &kept, nil
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Health().Name; got != "after" {
			t.Errorf("in Health it is called %q", got)
		}
		r.fail(errors.New("down"))
		c.start()
		synctest.Wait()
		if want := "replica=after"; !strings.Contains(log.String(), want) {
			t.Errorf("the default OnError did not log %q: %s", want, log.String())
		}
		r.fail(nil)
		if err := c.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e, _ := c.Get("a"); e == nil || e.text != "transformed" {
			t.Errorf("the transform was not used: %+v", e)
		}
		log.Reset()
		func() {
			defer func() { _ = recover() }()
			s.Run(t.Context())
		}()
		if !strings.Contains(log.String(), "a subscriber panicked") {
			t.Errorf("a subscription made before logs elsewhere; here is %q", log.String())
		}

		err = AdaptReplica(adapter.Key{}, c.Replica).Configure(func(*Options[*entry]) { t.Error("changed while running") })
		if err == nil || !strings.Contains(err.Error(), "after: the replica has already started") {
			t.Errorf("Configure after the start returned %v", err)
		}
	})
}

// A clock that comes by Configure is the clock of everything.
func TestConfigureClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a"), Options[*entry]{})
		a := c.subscribe(SubscribeOptions{Inline: true})
		clock := &handClock{now: time.Unix(1_000_000, 0)}
		if err := AdaptReplica(adapter.Key{}, c.Replica).Configure(func(o *Options[*entry]) { o.Clock = clock }); err != nil {
			t.Fatal(err)
		}
		c.start()
		synctest.Wait()
		if got := c.Health().LastContact; !got.Equal(clock.now) {
			t.Errorf("the last word was at %v, the clock says %v", got, clock.now)
		}
		clock.now = clock.now.Add(time.Hour)
		if age := c.Health().Age; age != time.Hour {
			t.Errorf("the age is %v", age)
		}
		if lag := a.Lag(); lag != (Lag{1, time.Hour}) {
			t.Errorf("the lag is %+v", lag)
		}
	})
}

// handClock is moved by hand; its timers never fire.
type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time               { return c.now }
func (c *handClock) NewTimer(time.Duration) Timer { return stillTimer{} }

type stillTimer struct{}

func (stillTimer) C() <-chan time.Time      { return nil }
func (stillTimer) Stop() bool               { return true }
func (stillTimer) Reset(time.Duration) bool { return true }

func TestWaitSynced(t *testing.T) {
	forbidden := errors.New("user ops cannot list entries")
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		c := newCopy(t, r, Options[*entry]{})

		err := c.WaitSynced(within(t, time.Second))
		wantError(t, err, context.DeadlineExceeded, "entries: not synced: the replica was not started")

		r.fail(fmt.Errorf("refused: %w", forbidden))
		c.start()
		err = c.WaitSynced(within(t, time.Minute))
		wantError(t, err, forbidden, "entries: not synced: entries: list at any version: refused: user ops cannot list entries (gave up: ")
		wantError(t, err, context.DeadlineExceeded, "")

		waited := make(chan error)
		go func() { waited <- c.WaitSynced(t.Context()) }()
		synctest.Wait()
		if isClosed(c.Synced()) {
			t.Error("synced without an answer")
		}
		r.fail(nil)
		if err := <-waited; err != nil {
			t.Errorf("WaitSynced returned %v", err)
		}
		if !isClosed(c.Synced()) || c.Len() != 1 {
			t.Errorf("after the wait Synced is %v and %d objects are there", isClosed(c.Synced()), c.Len())
		}

		r.fail(forbidden)
		synctest.Wait()
		if err := c.WaitSynced(t.Context()); err != nil {
			t.Errorf("once synced, always synced; WaitSynced returned %v", err)
		}
		_ = c.stop()
		if err := c.WaitSynced(t.Context()); err != nil {
			t.Errorf("stopped after it had synced, WaitSynced returned %v", err)
		}
	})
}

func TestWaitSyncedOfASlowSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		r.mute = true
		c := newCopy(t, r, Options[*entry]{}).start()
		err := c.WaitSynced(within(t, time.Minute))
		wantError(t, err, context.DeadlineExceeded, "the source has not answered in full yet (listing)")
	})
}

func TestWaitSyncedEndsWithTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := errors.New("forbidden")
		r := newRemote("a")
		r.fail(forbidden)
		c := newCopy(t, r, Options[*entry]{}).start()
		waited := make(chan error)
		go func() { waited <- c.WaitSynced(t.Context()) }()
		synctest.Wait()
		_ = c.stop()
		err := <-waited
		wantError(t, err, ErrStopped, "entries: not synced")
		wantError(t, err, forbidden, "")
		wantError(t, c.WaitSynced(t.Context()), ErrStopped, "entries: not synced")
	})
}

// wantError checks what an error is and what it says.
func wantError(t *testing.T, err, is error, says string) {
	t.Helper()
	if !errors.Is(err, is) || !strings.Contains(err.Error(), says) {
		t.Errorf("the error is %q; want a %q that says %q", err, is, says)
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is not one line: %q", err)
	}
}
