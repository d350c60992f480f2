package changelog_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/changelog/logtest"
)

func newRing(t *testing.T, bytes int64) *changelog.Ring[logtest.Object] {
	t.Helper()
	r, err := changelog.NewRing(changelog.RingOptions[logtest.Object]{
		Bytes: bytes, Append: logtest.Append, UID: func(o logtest.Object) string { return o.UID },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRing(t *testing.T) {
	logtest.Run(t, 30, func(t *testing.T) logtest.Subject {
		r := newRing(t, 0)
		return logtest.Subject{Sink: r, Log: r}
	})
}

func TestSmallRing(t *testing.T) {
	logtest.Run(t, 30, func(t *testing.T) logtest.Subject {
		r := newRing(t, 20<<10)
		return logtest.Subject{Sink: r, Log: r, Bounded: true}
	})
}

// A ring keeps its bound, and the state that was valid at its horizon; a reader that falls
// behind gets ErrExpired.
func TestRingIsBounded(t *testing.T) {
	const bound = 100 << 10
	r := newRing(t, bound)
	now := time.UnixMilli(1_780_000_000_000)
	commit := func(i int) {
		now = now.Add(time.Second)
		v := tarn.Version(strconv.Itoa(i))
		o := logtest.Object{Key: tarn.Key(fmt.Sprint("ns/", i%10)), UID: "u", Version: v, Text: fmt.Sprintf("%0500d", i)}
		b := tarn.Batch[logtest.Object]{Changes: []tarn.Change[logtest.Object]{{Type: tarn.Update, Key: o.Key, Version: v, Object: o, Heard: now}}, Positions: []tarn.Position{tarn.At(v)}, LastContact: now}
		if err := r.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		commit(1 + i)
	}
	early, err := r.AtVersion(t.Context(), "15")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		commit(21 + i)
	}
	bounds, _ := r.Bounds(t.Context())
	if bounds.States < 100 || bounds.States > 1000 {
		t.Errorf("%d states are kept in %d bytes", bounds.States, bound)
	}
	for _, err := range r.After(t.Context(), early.Seq) {
		if !errors.Is(err, changelog.ErrExpired) {
			t.Errorf("a reader that fell behind got %v, want ErrExpired", err)
		}
	}
	n := 0
	for e, err := range r.AsOf(t.Context(), changelog.Place{Seq: bounds.First}) {
		if err != nil || e.Seq > bounds.First {
			t.Errorf("as of the horizon: %v, %v", e.Seq, err)
		}
		n++
	}
	if n != 10 {
		t.Errorf("as of the horizon there are %d objects, want 10", n)
	}
}
