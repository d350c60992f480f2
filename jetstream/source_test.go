package jetstream

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
	"github.com/tarnproject/tarn/memory"
)

// follow starts a replica, which ends with the test.
func follow(t testing.TB, source tarn.Source[object], sinks ...tarn.Sink[object]) *tarn.Replica[object] {
	t.Helper()
	r, stop := run(t, source, sinks...)
	t.Cleanup(stop)
	waiting, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	if err := r.WaitSynced(waiting); err != nil {
		t.Fatalf("%v; %s", err, r.Health())
	}
	return r
}

// run starts a replica, and returns what stops it.
func run(t testing.TB, source tarn.Source[object], sinks ...tarn.Sink[object]) (*tarn.Replica[object], func()) {
	t.Helper()
	r, err := tarn.NewReplica(source, memory.New[object](), tarn.Options[object]{
		Name: "things", Sinks: sinks, OnError: func(_ context.Context, err error) { t.Logf("reported: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = r.Run(ctx) }() // says that ctx has ended
	return r, func() {
		cancel()
		<-r.Done()
	}
}

func newSource(t testing.TB, js connection, b Bucket) *Source[object] {
	t.Helper()
	s, err := NewSource[object](js, b, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool, detail func() string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute; %s", what, detail())
		}
	}
}

func contents(r *tarn.Replica[object]) map[tarn.Key]object { return maps.Collect(r.All()) }

// A copy of a bucket equals the origin: in both forms, with a history and without, while the
// source of the second copy fails in all the ways that package faults knows.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	js := startServer(t).connect()
	for name, form := range map[string]Bucket{"bucket": {}, "history": {History: 10}, "events": {Events: true}} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				b := form
				b.Name = fmt.Sprint(name, seed)
				origin := newOrigin()
				follow(t, origin, newSink(t, js, b))
				plan := faults.Random(seed)
				if seed == 0 {
					plan.End()
				}
				second := follow(t, faults.Source[object](newSource(t, js, b), plan, faults.SourceOptions[object]{}))
				random := rand.New(rand.NewPCG(seed, 1))
				for i := range 200 {
					origin.change(random)
					if i%20 == 0 {
						time.Sleep(10 * time.Millisecond)
					}
				}
				plan.End()
				eventually(t, "the second copy equals the origin", func() bool { return maps.Equal(contents(second), origin.content()) },
					func() string {
						return fmt.Sprintf("it has %v, the origin %v; %s", contents(second), origin.content(), second.Health())
					})
				eventually(t, "the versions are equal", func() bool { return second.Version() == origin.at() }, func() string { return string(second.Version()) })
			})
		}
	}
}

// A copy that keeps up sees every state once, and reads the bucket only once.
func TestWatchIsExact(t *testing.T) {
	js := startServer(t).connect()
	b := Bucket{Name: "b", History: 64}
	s := opened(t, js, b)
	defer s.Close()
	commit(t, s, to("2", change(tarn.Add, "a", "1", ""), change(tarn.Add, "b", "2", "")))
	r := follow(t, newSource(t, js, b))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var seen []string
	for c := range r.Changes(ctx) {
		seen = append(seen, fmt.Sprintf("%d %s@%s", c.Type, c.Key, c.Version))
		if len(seen) == 2 { // the first state
			commit(t, s, to("5", change(tarn.Update, "a", "3", ""), change(tarn.Update, "a", "4", ""), change(tarn.Delete, "b", "5", "")))
			commit(t, s, to("7", change(tarn.Add, "b", "6", ""), change(tarn.Update, "a", "7", "")))
		}
		if c.Version == "7" {
			break
		}
	}
	want := ", 2 a@3, 2 a@4, 3 b@5, 1 b@6, 2 a@7"
	if have := strings.Join(seen, ", "); !strings.HasSuffix(have, want) {
		t.Errorf("the changes are %s, want %s at the end", have, want)
	}
}

// A stream ends with ReasonExpired where a commit does not follow from the one before.
func TestWatchExpires(t *testing.T) {
	js := startServer(t).connect()
	gap := to("9", change(tarn.Update, "a", "9", ""))
	gap.Gaps = []tarn.Gap{{From: "2", To: "9", Cause: tarn.GapRead}}
	epoch := to("9", change(tarn.Update, "a", "9", ""))
	epoch.Positions[0].Epoch = "later"
	missed := to("9", tarn.Change[object]{Type: tarn.Delete, Missed: true, Key: "a", Version: "1"})
	rewound := to("2", change(tarn.Update, "a", "1", "other"))
	rewound.Changes[0].Rewound = true
	for name, b := range map[string]tarn.Batch[object]{"gap": gap, "epoch": epoch, "missed": missed, "rewound": rewound,
		"replaced": to("9", change(tarn.Update, "a", "8", ""), change(tarn.Update, "a", "9", ""))} {
		t.Run(name, func(t *testing.T) {
			bucket := Bucket{Name: name}
			s := opened(t, js, bucket)
			defer s.Close()
			commit(t, s, to("2", change(tarn.Add, "a", "1", ""), change(tarn.Add, "b", "2", "")))
			source := newSource(t, js, bucket)
			page, err := source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest})
			if err != nil || page.Version != "2" || len(page.Items) != 2 {
				t.Fatalf("the list is %+v (%v)", page, err)
			}
			if name == "replaced" { // a watch that is there already may read the first state in time
				commit(t, s, b)
			}
			w, err := source.Watch(t.Context(), tarn.WatchQuery{From: page.Version})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if name != "replaced" {
				commit(t, s, b)
			}
			for err == nil {
				_, err = w.Next(t.Context(), make([]tarn.Event[object], 10))
			}
			if tarn.ReasonOf(err) != tarn.ReasonExpired {
				t.Errorf("the stream ended with %v", err)
			}
			page, err = source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest})
			if err != nil || page.Version != b.Positions[0].Version {
				t.Errorf("the list after it has version %s (%v)", page.Version, err)
			}
		})
	}
}

// What cannot be read says why, in the engine's terms.
func TestListRefuses(t *testing.T) {
	js := startServer(t).connect()
	source := newSource(t, js, Bucket{Name: "none"})
	if _, err := source.List(t.Context(), tarn.ListQuery{}); err == nil || !strings.Contains(err.Error(), "stream not found") {
		t.Errorf("a bucket that is not there: %v", err)
	}
	s := opened(t, js, Bucket{Name: "none"})
	defer s.Close()
	if _, err := source.List(t.Context(), tarn.ListQuery{}); tarn.ReasonOf(err) != tarn.ReasonBusy || !strings.Contains(err.Error(), "nobody has fed it") {
		t.Errorf("a bucket that nobody has fed: %v", err)
	}
	two := to("5", change(tarn.Add, "a", "5", ""))
	two.Positions = []tarn.Position{{Section: "x", Version: "5", Complete: true}, {Section: "y", Version: "6", Complete: true}}
	commit(t, s, two)
	if _, err := source.List(t.Context(), tarn.ListQuery{}); err == nil || !strings.Contains(err.Error(), "2 sections") {
		t.Errorf("a bucket of two sections: %v", err)
	}
	commit(t, s, to("7", change(tarn.Update, "a", "7", "")))
	if _, err := source.List(t.Context(), tarn.ListQuery{AtLeast: "8"}); tarn.ReasonOf(err) != tarn.ReasonTooNew {
		t.Errorf("a version of the future: %v", err)
	}
	page, err := source.List(t.Context(), tarn.ListQuery{Key: "a"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Version != "7" || page.Version != "7" {
		t.Errorf("one key: %+v (%v)", page, err)
	}
	page, err = source.List(t.Context(), tarn.ListQuery{Limit: 1})
	if err != nil || page.Version != "7" || page.Continue == "" {
		t.Errorf("a probe: %+v (%v)", page, err)
	}
	if _, err := source.Watch(t.Context(), tarn.WatchQuery{From: "6"}); tarn.ReasonOf(err) != tarn.ReasonExpired {
		t.Errorf("a watch from a version of which nothing is known: %v", err)
	}
	if _, err := source.Watch(t.Context(), tarn.WatchQuery{Initial: true}); tarn.ReasonOf(err) != tarn.ReasonNoWatchList {
		t.Errorf("a watch with initial events: %v", err)
	}
}
