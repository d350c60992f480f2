package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/jetstream/embedded"
)

// An object that the server does not take is named, in the error and in the bucket, and the
// rest is written. The mark goes when the object becomes smaller. Readers of the bucket
// know that the object is bad.
func TestTooLargeObject(t *testing.T) {
	js := startServer(t, func(o *embedded.Options) { o.MaxPayload = 64 << 10 }).connect()
	b := Bucket{Name: "b"}
	s := opened(t, js, b)
	commit(t, s, to("2", change(tarn.Add, "a", "1", "small"), change(tarn.Add, "big", "2", "small")))
	source := newSource(t, js, b)
	reader := follow(t, source)
	err := s.Commit(t.Context(), to("4", change(tarn.Update, "big", "3", strings.Repeat("x", 64<<10)), change(tarn.Update, "a", "4", "still")))
	bad, named := errors.AsType[tarn.ObjectErrors](err)
	if !named || len(bad) != 1 || bad[0].Key != "big" || !strings.Contains(bad[0].Err.Error(), "max_payload") {
		t.Fatalf("Commit returned %v", err)
	}
	eventually(t, "the reader has the rest", func() bool { a, _ := reader.Get("a"); return a.Text == "still" }, func() string { return reader.Health().String() })
	if last, _ := reader.Get("big"); last.Text != "small" || len(reader.Health().Bad) != 1 {
		t.Errorf("the reader has %v, and %s", last, reader.Health())
	}
	s.Close()
	s = opened(t, js, b) // another process knows of it too
	defer s.Close()
	if page, err := source.List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Bad) != 1 || page.Bad[0].Key != "big" || page.Bad[0].Version != "3" || len(page.Items) != 1 {
		t.Errorf("the list is %+v (%v)", page, err)
	}
	commit(t, s, to("5", change(tarn.Update, "big", "5", "small again")))
	if page, err := source.List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Bad) != 0 || len(page.Items) != 2 {
		t.Errorf("the list is %+v (%v)", page, err)
	}
	eventually(t, "the reader has it", func() bool { return len(reader.Health().Bad) == 0 }, func() string { return reader.Health().String() })
}

// The feeder's Health names an object that the server does not take. A feeder that begins
// with what the bucket has does not mistake its last good state for the present one.
func TestTooLargeObjectOfAReplica(t *testing.T) {
	server := startServer(t, func(o *embedded.Options) { o.MaxPayload = 64 << 10 })
	b := Bucket{Name: "b", Lease: time.Second}
	origin := newOrigin()
	origin.put("big", "small")
	large := strings.Repeat("x", 64<<10)
	for _, life := range []string{"first", "second"} {
		r, stop := run(t, origin, newSink(t, server.connect(), b))
		if life == "first" {
			eventually(t, "the sink follows", func() bool { return r.Health().Sinks[0].Version == origin.at() }, func() string { return r.Health().String() })
			origin.put("big", large)
		}
		eventually(t, "the copy has it, and Health names it", func() bool {
			has, _ := r.Get("big")
			h := r.Health().Sinks[0]
			return has.Text == large && h.BadCount == 1 && h.Bad[0].Key == "big" && h.Version == origin.at()
		}, func() string { return fmt.Sprint(r.Health(), r.Health().Sinks[0]) })
		stop()
	}
}

// A commit that needs several atomic batches and fails between two of them is marked. The
// same process continues it, and so does another one. Readers wait.
func TestInterruptedCommit(t *testing.T) {
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint("again ", again), func(t *testing.T) {
			js := startServer(t).connect()
			b := Bucket{Name: "b", History: 5}
			s := opened(t, js, b)
			commit(t, s, to("1", change(tarn.Add, "ns/0", "1", "first")))
			s.batchesOnly = true
			large := to("9000")
			for i := range 2500 {
				large.Changes = append(large.Changes, change(tarn.Update, tarn.Key(fmt.Sprint("ns/", i)), version(i+10), "large"))
			}
			s.pending = "begun"
			w, err := s.writing(t.Context(), large)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			parts := make(chan part, 1)
			err = s.encode(w, func(p part) bool {
				parts <- p
				close(parts)
				return false
			})
			if err := errors.Join(err, s.writeEach(ctx, w, parts)); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := s.writeParts(ctx, w); err == nil {
				t.Fatal("a commit without a context succeeded")
			}
			source := newSource(t, js, b)
			if _, err := source.List(t.Context(), tarn.ListQuery{Limit: 1}); tarn.ReasonOf(err) != tarn.ReasonBusy {
				t.Errorf("a reader is told %v", err)
			}
			if again {
				large.Again = true
				commit(t, s, large)
			} else {
				s.Close()
				s = newSink(t, js, b)
				kept, err := s.Open(t.Context(), nil)
				if err != nil || len(kept.Positions) != 1 || kept.Positions[0].Complete || kept.Positions[0].Version != "1" {
					t.Fatalf("Open returned %+v (%v)", kept, err)
				}
				if _, err := s.Load(t.Context()); err == nil {
					t.Error("an incomplete state could be loaded")
				}
				large.Whole = true
				commit(t, s, large)
			}
			defer s.Close()
			if n := written(t, s); n != 2501 {
				t.Errorf("%d messages were written, want 2501", n)
			}
			page, err := source.List(t.Context(), tarn.ListQuery{})
			if err != nil || len(page.Items) != 2500 || page.Version != "9000" {
				t.Errorf("the list has %d items at %s (%v)", len(page.Items), page.Version, err)
			}
		})
	}
}

// The server is unreachable while the origin changes, and comes back. Health says how far behind
// the sink is, and afterwards everything is there, in the second copy too.
func TestServerAway(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b", History: 64, Lease: time.Second}
	origin := newOrigin()
	origin.put("a", "one")
	r := follow(t, origin, newSink(t, server.connect(), b))
	second := follow(t, newSource(t, server.connect(), b))
	server.Stop()
	for i := range 500 {
		origin.put(tarn.Key(fmt.Sprint("k/", i%20)), fmt.Sprint(i))
	}
	eventually(t, "Health says so", func() bool {
		h := r.Health().Sinks[0]
		return h.Err != nil && h.Pending > 0 && h.Lag > 0
	}, func() string { return r.Health().String() })
	server.start()
	eventually(t, "the sink has caught up", func() bool { return r.Health().Sinks[0].Version == origin.at() && r.Health().Sinks[0].Err == nil }, func() string { return r.Health().String() })
	eventually(t, "the second copy equals the origin", func() bool { return maps.Equal(contents(second), origin.content()) }, func() string { return second.Health().String() })
	if n := written(t, newSink(t, server.connect(), b)); n != 501 {
		t.Errorf("%d states were written, want 501", n)
	}
}

// A bucket that is full refuses a commit as a whole, and takes it when there is room.
func TestFullBucket(t *testing.T) {
	js := startServer(t).connect()
	b := Bucket{Name: "b", History: 2, MaxBytes: 300 << 10}
	s := opened(t, js, b)
	defer s.Close()
	text := strings.Repeat("x", 10<<10)
	commit(t, s, to("1", change(tarn.Add, "a", "1", text)))
	full := to("50")
	for i := range 40 {
		full.Changes = append(full.Changes, change(tarn.Add, tarn.Key(fmt.Sprint("k/", i)), version(i+2), text))
	}
	err := s.Commit(t.Context(), full)
	if err == nil || !strings.Contains(err.Error(), "maximum bytes exceeded") {
		t.Fatalf("Commit returned %v", err)
	}
	source := newSource(t, js, b)
	if page, err := source.List(t.Context(), tarn.ListQuery{}); err != nil || page.Version != "1" || len(page.Items) != 1 {
		t.Errorf("a commit that was refused left %+v (%v)", page, err)
	}
	enlarge(t, js, b)
	full.Again = true
	commit(t, s, full)
	if page, err := source.List(t.Context(), tarn.ListQuery{}); err != nil || page.Version != "50" || len(page.Items) != 41 {
		t.Errorf("after it was made larger it has %d items at %s (%v)", len(page.Items), page.Version, err)
	}
}

// Any NATS client reads the bucket as one: the value of a key, its history, a namespace, and
// what was deleted.
func TestOtherClients(t *testing.T) {
	js := startServer(t).connect()
	b := Bucket{Name: "pods", History: 5}
	s := opened(t, js, b)
	defer s.Close()
	commit(t, s, to("3", change(tarn.Add, "default/web", "1", "one"), change(tarn.Add, "other/db", "2", ""), change(tarn.Update, "default/web", "3", "two")))
	kv, err := js.KeyValue(t.Context(), "pods")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := kv.Get(t.Context(), "default.web")
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(entry.Value(), &o); err != nil || o.Text != "two" {
		t.Errorf("the value is %s (%v)", entry.Value(), err)
	}
	if history, err := kv.History(t.Context(), "default.web"); err != nil || len(history) != 2 {
		t.Errorf("the history has %d states (%v)", len(history), err)
	}
	watcher, err := kv.Watch(t.Context(), "default.>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watcher.Stop() }()
	commit(t, s, to("4", change(tarn.Delete, "default/web", "4", "")))
	var seen []string
	for entry := range watcher.Updates() {
		if entry == nil {
			continue
		}
		seen = append(seen, fmt.Sprint(entry.Key(), " ", entry.Operation()))
		if entry.Operation() == jetstream.KeyValueDelete {
			break
		}
	}
	if have := strings.Join(seen, ", "); have != "default.web KeyValuePutOp, default.web KeyValueDeleteOp" {
		t.Errorf("a watch of the namespace shows %s", have)
	}
	if _, err := kv.Get(t.Context(), "default.web"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("a deleted key: %v", err)
	}
}

// Content that a repair brings under the same version is written, and content that is there
// already is not.
func TestRepair(t *testing.T) {
	js := startServer(t).connect()
	s := opened(t, js, Bucket{Name: "b"})
	defer s.Close()
	commit(t, s, to("2", change(tarn.Add, "a", "1", "damaged"), change(tarn.Add, "b", "2", "good")))
	repair := to("2", change(tarn.Update, "a", "1", "repaired"), change(tarn.Update, "b", "2", "good"))
	for i := range repair.Changes {
		repair.Changes[i].Rewound = true
	}
	commit(t, s, repair)
	if n := written(t, s); n != 3 {
		t.Errorf("%d messages were written, want 3", n)
	}
	all, err := s.Load(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%v (%v)", all, err)
	}
	for _, c := range all {
		if c.Key == "a" && c.Object.Text != "repaired" {
			t.Errorf("a is %v", c.Object)
		}
	}
}

// A stream of events that has dropped the only state of an object is not treated as the
// whole content: the feeder that is started again sends everything.
func TestStreamDroppedStates(t *testing.T) {
	server := startServer(t)
	for name, b := range map[string]Bucket{
		"age":   {Name: "age", Events: true, MaxAge: time.Second, Lease: 300 * time.Millisecond},
		"bytes": {Name: "bytes", Events: true, MaxBytes: 20 << 10, Lease: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			origin := newOrigin()
			origin.put("quiet", "one")
			r, stop := run(t, origin, newSink(t, server.connect(), b))
			eventually(t, "the sink follows", func() bool { return r.Health().Sinks[0].Version == origin.at() }, func() string { return r.Health().String() })
			reader := newSink(t, server.connect(), b)
			eventually(t, "the state is dropped", func() bool {
				origin.put("busy", strings.Repeat("x", 4<<10))
				_, found, err := reader.last(t.Context(), "quiet")
				return !found && err == nil
			}, func() string { return r.Health().String() })
			stop()
			r, stop = run(t, origin, newSink(t, server.connect(), b))
			defer stop()
			eventually(t, "the copy has everything", func() bool { return maps.Equal(contents(r), origin.content()) }, func() string { return r.Health().String() })
		})
	}
}
