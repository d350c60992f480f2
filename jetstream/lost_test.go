package jetstream

import (
	"errors"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// backup returns what puts the server back to what it has now, as a loss of power does with
// what was not yet on disk.
func (s *server) backup() (restore func()) {
	s.t.Helper()
	saved := s.t.TempDir() + "/saved"
	s.Stop()
	if err := os.CopyFS(saved, os.DirFS(s.options.Dir)); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	return func() {
		s.Stop()
		if err := errors.Join(os.RemoveAll(s.options.Dir), os.CopyFS(s.options.Dir, os.DirFS(saved))); err != nil {
			s.t.Fatal(err)
		}
		s.start()
	}
}

// A server that loses what it confirmed is noticed by the feeder, which writes the
// differences, and by readers, which read all again.
func TestServerLosesWrites(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b", History: 64, Lease: 300 * time.Millisecond}
	origin := newOrigin()
	origin.put("a", "one")
	origin.put("b", "one")
	sink := newSink(t, server.connect(), b)
	r := follow(t, origin, sink)
	caughtUp := func() bool { h := r.Health().Sinks[0]; return h.Version == origin.at() && h.Err == nil }
	eventually(t, "the sink follows", caughtUp, func() string { return r.Health().String() })
	restore := server.backup()
	source := newSource(t, server.connect(), b)
	source.checkEvery = 100 * time.Millisecond
	second := follow(t, source)
	origin.put("a", "two")
	origin.remove("b")
	origin.put("c", "two")
	eventually(t, "the second copy follows", func() bool { return second.Version() == origin.at() }, func() string { return second.Health().String() })
	restore()
	origin.put("d", "three")
	eventually(t, "the sink follows", caughtUp, func() string { return r.Health().String() })
	eventually(t, "the second copy equals the origin", func() bool { return maps.Equal(contents(second), origin.content()) }, func() string { return second.Health().String() })
	gaps, err := gapsOf(sink.bucketClient)
	if err != nil || len(gaps) == 0 || gaps[len(gaps)-1].Cause != tarn.GapReconciled {
		t.Errorf("the gaps are %v (%v)", gaps, err)
	}
}

// What a server lost of a stream is a gap that begins where the stream still has everything.
func TestGapOfLostWrites(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	s := opened(t, server.connect(), Bucket{Name: "b", Events: true})
	defer s.Close()
	commit(t, s, to("1", change(tarn.Add, "a", "1", "x")))
	restore := server.backup()
	eventually(t, "the feeder writes", func() bool {
		return s.Commit(t.Context(), to("3", change(tarn.Update, "a", "2", "x"), change(tarn.Update, "a", "3", "x"))) == nil
	}, func() string { return "" })
	restore()
	next := to("4", change(tarn.Update, "a", "4", "x"))
	eventually(t, "the loss is noticed", func() bool { return errors.Is(s.Commit(t.Context(), next), tarn.ErrSinkEmpty) }, func() string { return "" })
	next.Whole, next.Gaps = true, []tarn.Gap{{From: "3", To: "4", Cause: tarn.GapReconciled}}
	commit(t, s, next)
	if gaps, err := gapsOf(s.bucketClient); err != nil || len(gaps) != 1 || gaps[0].From != "1" || gaps[0].To != "4" {
		t.Errorf("the gaps are %v (%v)", gaps, err)
	}
}

// A bucket that somebody deletes while it is fed is made and filled again.
func TestBucketDeleted(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	js := server.connect()
	b := Bucket{Name: "b", Lease: 300 * time.Millisecond}
	origin := newOrigin()
	origin.put("a", "one")
	r := follow(t, origin, newSink(t, server.connect(), b))
	eventually(t, "the sink follows", func() bool { return r.Health().Sinks[0].Version == origin.at() }, func() string { return r.Health().String() })
	if err := js.DeleteStream(t.Context(), b.stream()); err != nil {
		t.Fatal(err)
	}
	origin.put("b", "two")
	eventually(t, "the sink follows", func() bool {
		h := r.Health().Sinks[0]
		return h.Version == origin.at() && h.Err == nil
	}, func() string { return r.Health().String() })
	second := follow(t, newSource(t, js, b))
	if !maps.Equal(contents(second), origin.content()) {
		t.Errorf("the bucket has %v, the origin %v", contents(second), origin.content())
	}
}
