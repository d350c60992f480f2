package tarn

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

// ofAnotherSource is the answer of a sink whose content came from another source.
func ofAnotherSource(context.Context) error { return ErrOtherSource }

// Two sections now read another source, and one of them cannot be read. The other one's
// commits must not leave a position from which the next process resumes.
func TestAnotherSourceReadInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := loadedSink{fakeSink: newFakeSink(policy("disk"))}
		run := func(one, two *remote) (r *Replica[*entry], stop func()) {
			r, err := NewReplicaOf([]Section[*entry]{{Name: "one", Source: one, Prefix: "one/"}, {Name: "two", Source: two, Prefix: "two/"}},
				newPlainStore(), Options[*entry]{Sinks: []Sink[*entry]{disk}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- r.Run(ctx) }()
			time.Sleep(time.Minute)
			return r, func() { cancel(); <-done }
		}
		_, stop := run(newRemote("one/a"), newRemote("two/a"))
		stop()
		disk.heard()

		one, two := newRemote("one/a", "one/b"), newRemote("two/b", "two/c")
		two.fail(errUnreachable)
		disk.confirm = ofAnotherSource
		_, stop = run(one, two)
		stop()
		disk.wantHeard(t, "+one/b2 one@2' (one after 1 to 2 rewound) (two after 1 to  rewound)")
		if got := disk.positions.All(); len(got) != 1 || got[0].Section != "one" {
			t.Errorf("the positions are %+v, although the second section was not read", got)
		}

		disk.confirm, disk.batches = nil, nil
		two.fail(nil)
		r, stop := run(one, two)
		defer stop()
		if h := r.Health(); !h.Synced {
			t.Errorf("not synced: %+v", h)
		}
		want := one.state()
		maps.Copy(want, two.state())
		if has := disk.state(); !maps.EqualFunc(has, want, func(a, b *entry) bool { return *a == *b }) {
			t.Errorf("the disk holds %v, want %v", has, want)
		}
		if got := disk.positions.All(); len(got) != 2 || got[1].Epoch == "" {
			t.Errorf("the positions are %+v: the second section is in the epoch of the other source", got)
		}
	})
}

// A sink that opens after the copy was loaded, or began with nothing, may be of another source.
func TestSinkThatOpensLateIsOfAnotherSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		sink := listedSink{newFakeSink(policy("sink"))}
		sink.has = map[Key]*entry{"a": r.state()["a"], "z": {name: "z", version: "1"}}
		sink.positions.Reset(At("1"))
		began := time.Now()
		sink.confirm = func(context.Context) error {
			if time.Since(began) < 20*time.Second {
				return errUnreachable
			}
			return ErrOtherSource
		}
		life := attached(t, r, sink)
		time.Sleep(10 * time.Second)
		if h := life.Health(); !h.Synced || !errors.Is(h.Sinks[0].Err, errUnreachable) {
			t.Errorf("health while nobody knows which source the sink is of: %+v", h)
		}
		time.Sleep(time.Minute)
		sink.wantHeard(t, "whole +a1 +b2 @2 (after 1 to 2 reconciled)")
		if h := life.Health(); h.Sinks[0].Err != nil {
			t.Errorf("the sink has %v", h.Sinks[0].Err)
		}
		_ = life.stop()
	})
}
