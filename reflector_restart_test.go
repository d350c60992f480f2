package tarn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
)

// TestWarmRestart tells the stories of docs/protocol.md that begin with what another
// process left on disk.
func TestWarmRestart(t *testing.T) { tellStories(t, "restart") }

// What comes from disk is served at once, and says so, while the source is unreachable.
func TestServingFromDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := parseScripted(t, "probe hang")
		store := parseDisk(t, "5: a@3 b@5")
		r, err := tarn.NewReplica(source, store, tarn.Options[*thing]{Name: "things", OnError: func(context.Context, error) {}})
		if err != nil {
			t.Fatal(err)
		}
		end := start(t, r.Run)
		synctest.Wait()
		if r.Len() != 2 || r.Version() != "5" {
			t.Errorf("%d objects at version %q are served", r.Len(), r.Version())
		}
		if err := r.WaitFor(t.Context(), "5"); err != nil {
			t.Errorf("the version on disk cannot be waited for: %v", err)
		}
		h := r.Health()
		if !h.FromDisk || h.Synced || h.Age != 42*time.Second || h.Fresh(time.Hour) || h.Disk == nil {
			t.Errorf("Health is %+v", h)
		}
		if s := h.String(); !strings.Contains(s, "from disk, 42s old, at version 5") {
			t.Errorf("Health says %q", s)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := r.WaitSynced(short); err == nil || !strings.Contains(err.Error(), "from disk") {
			t.Errorf("WaitSynced says %v", err)
		}
		// A late subscriber begins with the current content too.
		var late []string
		for c := range r.Changes(short) {
			late = append(late, describeChange(c))
		}
		if len(late) != 0 {
			t.Errorf("after the end there was %v", late)
		}
		more, stopMore := context.WithTimeout(t.Context(), time.Second)
		defer stopMore()
		for c := range r.Changes(more) {
			late = append(late, describeChange(c))
		}
		if slices.Sort(late); strings.Join(late, ", ") != "add a@3 (initial), add b@5 (initial)" {
			t.Errorf("a late subscriber sees %v", late)
		}
		end()
		source.wantRequests(t, "probe")
	})
}

// A disk that cannot be read costs a list, and is reported.
func TestADiskThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := parseScripted(t, "list 5: a@3\nwatch:")
		store := parseDisk(t, "none")
		store.err = errors.New("no disk")
		var told []error
		r, err := tarn.NewReplica(source, store, tarn.Options[*thing]{Name: "things", OnError: func(_ context.Context, err error) { told = append(told, err) }})
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, r.Run)
		if err := r.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the watch is open
		if len(told) != 1 || !strings.Contains(told[0].Error(), "no disk; the copy begins with a list") {
			t.Errorf("reported: %v", told)
		}
		stop()
		source.wantRequests(t, "list rv=any limit=500\nwatch rv=5 5m..10m")
	})
}

// Sections resume where they were, found by their names. One that is new is listed, as
// a difference to whatever is there, and one that is gone leaves nothing behind.
func TestWarmSections(t *testing.T) {
	at := func(section string, v tarn.Version) tarn.Position {
		return tarn.Position{Section: section, Version: v, Complete: true}
	}
	for _, test := range []struct {
		name      string
		positions []tarn.Position
		// a and b are the servers of the two sections, askedA and askedB the
		// requests that each must get.
		a, askedA, b, askedB string

		told    string
		version tarn.Version
	}{
		{
			name: "each where it was", positions: []tarn.Position{at("b", "7"), at("a", "5")},
			a: "probe 9\nwatch: mod a1@9", askedA: "probe\nwatch rv=5 3s",
			b: "probe 9\nwatch: bookmark 9", askedB: "probe\nwatch rv=7 3s",
			told: "add a1@3 (initial), add b1@5 (initial), update a1@3 -> a1@9", version: "9",
		},
		{
			name: "one that is new", positions: []tarn.Position{at("a", "5")},
			a: "probe 5\nwatch:", askedA: "probe\nwatch rv=5 5m..10m",
			b: "list 8: b1@8\nwatch:", askedB: "list rv=any limit=500\nwatch rv=8 5m..10m",
			told: "add a1@3 (initial), add b1@5 (initial), update b1@5 -> b1@8", version: "5",
		},
		{
			name: "one that lacks something", positions: []tarn.Position{at("a", "5"), {Section: "b", Version: "5"}},
			a: "probe 5\nwatch:", askedA: "probe\nwatch rv=5 5m..10m",
			b: "list 8: b1@8\nwatch:", askedB: "list rv=5\nwatch rv=8 5m..10m",
			told: "add a1@3 (initial), add b1@5 (initial), update b1@5 -> b1@8", version: "5",
		},
		{
			name: "one that is gone", positions: []tarn.Position{at("a", "5"), at("b", "6"), at("c", "2")},
			a: "probe 6\nwatch: bookmark 6", askedA: "probe\nwatch rv=5 3s",
			b: "probe 6\nwatch:", askedB: "probe\nwatch rv=6 5m..10m",
			told: "add a1@3 (initial), add b1@5 (initial)", version: "6",
		},
		{
			name: "what was not in sections", positions: []tarn.Position{at("", "5")},
			a: "list 9: a1@3\nwatch:", askedA: "list rv=any limit=500\nwatch rv=9 5m..10m",
			b: "list 8: b1@8\nwatch:", askedB: "list rv=any limit=500\nwatch rv=8 5m..10m",
			told: "add a1@3 (initial), add b1@5 (initial), update b1@5 -> b1@8", version: "8",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := parseDisk(t, "5: a1@3 b1@5 c1@2")
				store.positions = test.positions
				a, b := parseScripted(t, test.a), parseScripted(t, test.b)
				r, err := tarn.NewReplicaOf([]tarn.Section[*thing]{
					{Name: "a", Source: a, Prefix: "a"}, {Name: "b", Source: b, Prefix: "b"},
				}, store, tarn.Options[*thing]{Name: "things"})
				if err != nil {
					t.Fatal(err)
				}
				var told []string
				if _, err := r.Subscribe(func(c tarn.Change[*thing]) { told = append(told, describeChange(c)) }, tarn.SubscribeOptions{}); err != nil {
					t.Fatal(err)
				}
				stop := start(t, r.Run)
				if err := r.WaitSynced(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				slices.Sort(told)
				if got := strings.Join(told, ", "); got != test.told {
					t.Errorf("the handler saw %s", got)
				}
				if h := r.Health(); h.FromDisk || h.Version != test.version || r.Version() != test.version || store.Version() != test.version || r.Len() != 2 {
					t.Errorf("Health is %v, the store has %d objects at %s", h, r.Len(), store.Version())
				}
				stop()
				a.wantRequests(t, test.askedA)
				b.wantRequests(t, test.askedB)
			})
		})
	}
}

// start runs something until stop, which waits for its end.
func start(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}
