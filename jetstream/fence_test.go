package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

// A second feeder waits, and names the one that it waits for. It takes over at once when the
// first has stopped, and after the lease if the first is only gone.
func TestSecondFeederWaits(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b", Lease: 300 * time.Millisecond, Feeder: "the first"}
	first := opened(t, server.connect(), b)
	commit(t, first, to("1", change(tarn.Add, "a", "1", "")))
	second := newSink(t, server.connect(), b)
	for range 4 { // the lease is renewed meanwhile
		if _, err := second.Open(t.Context(), nil); !errors.Is(err, ErrFed) || !strings.Contains(err.Error(), "the first") {
			t.Fatalf("Open returned %v", err)
		}
		time.Sleep(150 * time.Millisecond)
	}
	first.stop() // as if the process were paused
	first.running.Wait()
	eventually(t, "the second takes over", func() bool {
		_, err := second.Open(t.Context(), nil)
		return err == nil
	}, func() string { return "" })
	defer second.Close()
	commit(t, second, to("2", change(tarn.Update, "a", "2", "")))

	err := first.Commit(t.Context(), to("3", change(tarn.Update, "a", "3", "")))
	if !errors.Is(err, errOther) && !errors.Is(err, ErrFed) { // ErrFed if its end interrupted a renewal
		t.Errorf("the first feeder could write after the second: %v", err)
	}
	err = first.Commit(t.Context(), to("3", change(tarn.Update, "a", "3", "")))
	if !errors.Is(err, ErrFed) || first.Disk().Err == nil {
		t.Errorf("the first feeder says %v, and in Health %v", err, first.Disk().Err)
	}
	third := newSink(t, server.connect(), b)
	second.Close()
	if _, err := third.Open(t.Context(), nil); err != nil {
		t.Errorf("after the second has stopped: %v", err)
	}
	third.Close()
}

// A feeder that comes back after another one wrote and went is given everything, and writes
// the differences only.
func TestFeederComesBack(t *testing.T) {
	server := startServer(t)
	b := Bucket{Name: "b", Lease: 200 * time.Millisecond}
	first := opened(t, server.connect(), b)
	commit(t, first, to("2", change(tarn.Add, "a", "1", ""), change(tarn.Add, "b", "2", "")))
	first.stop()
	first.running.Wait()
	second := newSink(t, server.connect(), b)
	eventually(t, "the second takes over", func() bool {
		_, err := second.Open(t.Context(), nil)
		return err == nil
	}, func() string { return "" })
	commit(t, second, to("4", change(tarn.Update, "a", "3", ""), change(tarn.Add, "c", "4", "")))
	second.Close()

	eventually(t, "the first is told that the bucket has other content", func() bool {
		return errors.Is(first.Commit(t.Context(), to("5", change(tarn.Update, "a", "5", ""))), tarn.ErrSinkEmpty)
	}, func() string { return "" })
	before := written(t, first)
	whole := to("5", change(tarn.Add, "a", "5", ""), change(tarn.Add, "b", "2", ""))
	whole.Whole = true
	commit(t, first, whole)
	if n := written(t, first) - before; n != 2 { // a, and the delete of c
		t.Errorf("%d messages were written, want 2", n)
	}
	first.Close()
}

// Two replicas feed one bucket. One of them says that it waits. When the other one stops it
// takes over, and what the bucket has stays equal to the origin.
func TestReplicasTakeOver(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b", Lease: 300 * time.Millisecond, History: 64}
	origin := newOrigin()
	origin.put("a", "one")
	first, stop := run(t, origin, newSink(t, server.connect(), b))
	eventually(t, "the first feeds", func() bool { return first.Health().Sinks[0].Version == origin.at() }, func() string { return first.Health().String() })
	second := follow(t, origin, newSink(t, server.connect(), b))
	eventually(t, "the second says that it waits", func() bool { return errors.Is(second.Health().Sinks[0].Err, ErrFed) }, func() string { return second.Health().String() })
	origin.put("b", "two")
	stop()
	origin.put("a", "three")
	origin.remove("b")
	eventually(t, "the second feeds", func() bool {
		h := second.Health().Sinks[0]
		return h.Err == nil && h.Version == origin.at()
	}, func() string { return second.Health().String() })
	third := follow(t, newSource(t, server.connect(), b))
	if !maps.Equal(contents(third), origin.content()) {
		t.Errorf("the bucket has %v, the origin %v", contents(third), origin.content())
	}
}

var restartObjects = testsize.Flag("objects", 3000, 600, "how many objects TestRestartWritesNothing has")

// A process that starts again with unchanged objects writes none, whether it remembers its
// position or not.
func TestRestartWritesNothing(t *testing.T) {
	count := restartObjects()
	js := startServer(t).connect()
	for _, b := range []Bucket{{Name: "one"}, {Name: "many", History: 10}} {
		origin := newOrigin()
		for i := range count { // several batches
			origin.put(tarn.Key(fmt.Sprint("ns/", i)), "text")
		}
		sink := newSink(t, js, b)
		r, stop := run(t, origin, sink)
		eventually(t, "all is written", func() bool { return r.Health().Sinks[0].Version == origin.at() }, func() string { return r.Health().String() })
		stop()
		if n := written(t, sink); n != uint64(count) {
			t.Errorf("%d messages were written for %d objects", n, count)
		}
		r, stop = run(t, origin, newSink(t, js, b))
		eventually(t, "it is synced", func() bool { return r.Health().Sinks[0].Version == origin.at() }, func() string { return r.Health().String() })
		stop()
		if n := written(t, sink); n != uint64(count) {
			t.Errorf("a restart wrote %d messages", n-uint64(count))
		}
		lose(t, js, b)
		origin.put("ns/7", "changed")
		origin.remove("ns/8")
		r, stop = run(t, origin, newSink(t, js, b))
		eventually(t, "it is synced", func() bool { return r.Health().Sinks[0].Version == origin.at() }, func() string { return r.Health().String() })
		stop()
		if n := written(t, sink); n != 2 { // the count is lost too
			t.Errorf("after the position was lost %d messages were written, want 2", n)
		}
		again := follow(t, newSource(t, js, b))
		if !maps.Equal(contents(again), origin.content()) {
			t.Errorf("the bucket is not what the origin is")
		}
	}
}

// lose removes the checkpoint of a bucket.
func lose(t testing.TB, js connection, b Bucket) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	kv, err := js.KeyValue(ctx, b.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Purge(ctx, checkpointKey); err != nil {
		t.Fatal(err)
	}
}

// A bucket of another selection is compared, not continued; one of another source is found
// out when the source is asked.
func TestOtherOrigin(t *testing.T) {
	js := startServer(t).connect()
	source := "cluster 1"
	b := Bucket{Name: "b", Of: "all", Source: func(context.Context) (string, error) { return source, nil }}
	open := func() (*Sink[object], tarn.Kept) {
		s := newSink(t, js, b)
		kept, err := s.Open(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s, kept
	}
	s, kept := open()
	if err := kept.Confirm(t.Context()); err != nil {
		t.Errorf("a new bucket: %v", err)
	}
	commit(t, s, to("2", change(tarn.Add, "a", "1", ""), change(tarn.Add, "b", "2", "")))
	s.Close()
	s, kept = open()
	if err := kept.Confirm(t.Context()); err != nil || len(kept.Positions) != 1 {
		t.Errorf("the same source: %v, %+v", err, kept)
	}
	s.Close()
	source = "cluster 2"
	s, kept = open()
	for range 2 { // each section of the copy asks
		if err := kept.Confirm(t.Context()); !errors.Is(err, tarn.ErrOtherSource) {
			t.Errorf("another source: %v", err)
		}
	}
	s.Close()
	b.Of = "some"
	s, kept = open()
	defer s.Close()
	if len(kept.Positions) != 0 {
		t.Errorf("another selection is continued at %+v", kept)
	}
}

// A feeder that closes may do so twice, and each time it writes a checkpoint. Another feeder
// that claims the bucket at that moment waits or succeeds, and does not fail.
func TestClaimWhileAnotherCloses(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b"}
	first := opened(t, server.connect(), b)
	for i := range testsize.Of(200, 30) {
		version := func(n int) tarn.Version { return tarn.Version(fmt.Sprint(2*i + n)) }
		commit(t, first, to(version(1), change(tarn.Update, "a", version(1), "")))
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			first.Close()
			first.Close()
		}()
		second := newSink(t, server.connect(), b)
		err := second.Claim(t.Context())
		for ; errors.Is(err, ErrFed); err = second.Claim(t.Context()) {
		}
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if _, err := second.Open(t.Context(), nil); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		commit(t, second, to(version(2), change(tarn.Update, "a", version(2), "")))
		<-closed
		first = second
	}
	first.Close()
}
