package tarn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// twoClusters runs a replica of two independent sections with sinks.
func twoClusters(t *testing.T, east, west *remote, sinks ...Sink[*entry]) (stop func()) {
	t.Helper()
	_, stop = runClusters(t, east, west, sinks...)
	return stop
}

func runClusters(t *testing.T, east, west *remote, sinks ...Sink[*entry]) (r *Replica[*entry], stop func()) {
	t.Helper()
	r, err := NewReplicaOf([]Section[*entry]{
		{Name: "east", Source: east, Prefix: "east/", Independent: true},
		{Name: "west", Source: west, Prefix: "west/", Independent: true},
	}, newPlainStore(), Options[*entry]{Sinks: sinks, OnError: func(context.Context, error) {}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = r.Run(ctx) }()
	settle()
	return r, func() { cancel(); <-r.Done() }
}

// aheadOfWest makes a sink that has a later version of west than the disk from which the copy
// starts.
func aheadOfWest(t *testing.T) (east, west *remote, disk loadedSink, sink listedSink) {
	east, west = newRemote("east/a"), newRemote("west/a", "west/b")
	disk, sink = loadedSink{fakeSink: newFakeSink(policy("disk"))}, listedSink{newFakeSink(policy("sink"))}
	stop := twoClusters(t, east, west, disk, sink)
	disk.refuse = func(context.Context, Batch[*entry]) error { return errUnreachable }
	west.put("west/a", "") // 3
	settle()
	west.remove("west/b") // 4
	settle()
	stop()
	disk.allow()
	sink.heard()
	return east, west, disk, sink
}

// A sink keeps its content of an unreachable cluster if the copy has only an older state of
// that cluster.
func TestSinkAheadOfAClusterThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west, disk, sink := aheadOfWest(t)
		west.fail(errUnreachable)
		stop := twoClusters(t, east, west, disk, sink)
		defer func() { stop() }()
		sink.wantHeard(t)
		east.put("east/a", "") // 2
		settle()
		sink.wantHeard(t, "~east/a2 east@2 west@4")

		west.fail(nil)
		west.put("west/c", "") // 5
		settle()
		west.put("west/c", "") // 6
		settle()
		sink.wantHeard(t, "+west/c5 east@2 west@5", "~west/c6 east@2 west@6")
	})
}

// A comparison sends only what is different, in each of the sections.
func TestSinkGetsTheDifferencesOfAllSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west := newRemote("east/a", "east/b"), newRemote("west/a", "west/b")
		disk, sink := loadedSink{fakeSink: newFakeSink(policy("disk"))}, listedSink{newFakeSink(policy("sink"))}
		twoClusters(t, east, west, disk, sink)()
		stop := twoClusters(t, east, west, disk)
		west.put("west/a", "") // 3
		settle()
		stop()
		sink.heard()
		defer twoClusters(t, east, west, disk, sink)()
		sink.wantHeard(t, "~west/a3 east@2 west@3 (west after 2 to 3 reconciled)")
	})
}

// The same for a sink that is compared, because it is behind in another cluster.
func TestSinkBehindInOneClusterAndAheadInAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west, disk, sink := aheadOfWest(t)
		west.fail(errUnreachable)
		stop := twoClusters(t, east, west, disk)
		east.put("east/a", "") // 2
		settle()
		stop()
		stop = twoClusters(t, east, west, disk, sink)
		defer func() { stop() }()
		sink.wantHeard(t, "~east/a2 east@2 west@4 (east after 1 to 2 reconciled)")
		east.put("east/b", "") // 3
		settle()
		sink.wantHeard(t, "+east/b3 east@3 west@4")
		west.fail(nil)
		west.put("west/c", "") // 5
		settle()
		sink.wantHeard(t, "+west/c5 east@3 west@5")
	})
}

// The same if one of the two lacks an object of that cluster: then versions do not show what
// the sink has, and it is compared once the cluster is reachable.
func TestSinkAheadOfAClusterThatLacksSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, disksLack := range []bool{true, false} {
			east, west, disk, sink := aheadOfWest(t)
			lacks, kept := sink.fakeSink, "east@1 west@4?"
			if disksLack {
				lacks, kept = disk.fakeSink, "east@1 west@4"
			}
			at := lacks.positions.of("west")[0]
			at.Complete = false
			lacks.positions.Move(at)
			west.fail(errUnreachable)
			stop := twoClusters(t, east, west, disk, sink)
			sink.wantHeard(t, kept)
			west.fail(nil)
			west.put("west/c", "") // 5
			settle()
			sink.wantHeard(t, "+west/c5 east@1 west@5 (west after 4 to 5 reconciled)")
			stop()
		}
	})
}

// A sink that loses its content also lacks that of an unreachable cluster: that is a gap, as
// for any other state that it does not get.
func TestSinkLosesAClusterThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west := newRemote("east/a"), newRemote("west/a")
		sink := listedSink{newFakeSink(policy("sink"))}
		twoClusters(t, east, west, sink)()
		sink.heard()
		west.fail(errUnreachable)
		defer twoClusters(t, east, west, sink)()
		sink.wantHeard(t, "east@1 west@1")
		sink.refuse = func(context.Context, Batch[*entry]) error {
			clear(sink.has)
			sink.allow()
			return ErrSinkEmpty
		}
		east.put("east/a", "") // 2
		settle()
		sink.wantHeard(t, "whole +east/a2 east@2 (west after 1 to  reconciled) (east after 1 to 2 reconciled)")
		west.fail(nil)
		settle()
		sink.wantHeard(t, "+west/a1 east@2 west@1")
	})
}

// A cluster that went back in time while it was unreachable is noticed when it answers again.
func TestSinkAheadOfAClusterThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west, disk, sink := aheadOfWest(t)
		west.restore(2, disk.westOf())
		west.fail(errUnreachable)
		stop := twoClusters(t, east, west, disk, sink)
		defer func() { stop() }()
		sink.wantHeard(t)
		west.fail(nil)
		west.put("west/a", "other") // 3 again
		settle()
		sink.wantHeard(t, "!east/a1 !west/a3 +west/b2 east@1 west@3 (west after 4 to 3 rewound)")
	})
}

// westOf is what a sink has of west.
func (s *fakeSink) westOf() map[Key]*entry {
	all := s.state()
	for key := range all {
		if !key.HasPrefix("west/") {
			delete(all, key)
		}
	}
	return all
}

// A cluster that is removed while it is unreachable is removed from a sink that is ahead, also
// if the copy has none of its objects.
func TestSinkAheadOfAClusterThatIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west := newRemote("east/a"), newRemote("west/a")
		west.remove("west/a") // 2
		disk, sink := loadedSink{fakeSink: newFakeSink(policy("disk"))}, listedSink{newFakeSink(policy("sink"))}
		stop := twoClusters(t, east, west, disk, sink)
		disk.refuse = func(context.Context, Batch[*entry]) error { return errUnreachable }
		west.put("west/b", "") // 3
		settle()
		stop()
		disk.allow()
		sink.heard()
		west.fail(errUnreachable)
		r, stop := runClusters(t, east, west, disk, sink)
		defer stop()
		sink.wantHeard(t)
		if err := r.RemoveSection("west"); err != nil {
			t.Fatal(err)
		}
		settle()
		sink.wantHeard(t, "-west/b east@1")
	})
}

// States of a cluster that a slow sink did not get are a gap, also if the cluster was removed
// meanwhile, and if it is there again.
func TestFoldedStatesOfAClusterThatIsRemoved(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			east, west := newRemote("east/a"), newRemote("west/a")
			sink := newFakeSink(SinkPolicy[*entry]{Name: "log", EveryState: true, MaxBytes: 3, SizeOf: func(Change[*entry]) int { return 1 }})
			r, stop := runClusters(t, east, west, sink)
			defer stop()
			sink.heard()
			sink.refuse = func(ctx context.Context, _ Batch[*entry]) error {
				pause(ctx, realClock{}, time.Minute)
				return nil
			}
			east.put("east/a", "") // 2
			synctest.Wait()
			for range 5 {
				west.put("west/a", "") // 6 at last
			}
			synctest.Wait()
			if err := r.RemoveSection("west"); err != nil {
				t.Fatal(err)
			}
			want := "-west/a east@2 (west after 1 to  folded)"
			if again {
				if err := r.AddSection(clusterOf("west", west)); err != nil {
					t.Fatal(err)
				}
				want = "+west/a6 east@2 west@6 (west after 1 to 6 read anew)"
			}
			time.Sleep(5 * time.Minute)
			sink.wantHeard(t, "~east/a2 east@2 west@1", want)
		})
	}
}

// The answer to the first commit of a section was lost, and the sink is compared before that
// commit is repeated: states that came in between may be missing.
func TestSinkIsComparedAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west := newRemote("east/a"), newRemote("west/a")
		sink := listedSink{newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true})}
		sink.has = map[Key]*entry{"west/a": west.state()["west/a"]}
		sink.positions.Move(Position{Section: "west", Version: "1", Complete: true})
		west.fail(errUnreachable)
		refuse := func(refused func(Batch[*entry]) bool) {
			sink.mu.Lock()
			defer sink.mu.Unlock()
			sink.refuse = func(_ context.Context, b Batch[*entry]) error {
				if refused(b) {
					return errUnreachable
				}
				return nil
			}
		}
		sink.lost = func(context.Context, Batch[*entry]) error {
			refuse(func(Batch[*entry]) bool { return true })
			return errUnreachable
		}
		stop := twoClusters(t, east, west, sink)
		defer func() { stop() }()
		sink.wantHeard(t, "+east/a1 east@1 west@1")
		east.put("east/a", "") // 2
		east.put("east/a", "") // 3
		settle()
		west.fail(nil)
		sink.lost = nil
		refuse(func(b Batch[*entry]) bool { return b.Again }) // until it is compared
		time.Sleep(5 * time.Minute)
		sink.wantHeard(t, "~east/a3 east@3 west@1 (east after 1 to 3 reconciled)")
	})
}
