package changelog

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// What a ring remembers of commits without changes does not grow, and every version is found
// all the same.
func TestQuietRing(t *testing.T) {
	r, err := NewRing(RingOptions[string]{Append: func(buf []byte, object string) ([]byte, error) { return append(buf, object...), nil }})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(version int, epoch string, changes ...tarn.Change[string]) {
		t.Helper()
		at := tarn.At(tarn.Version(strconv.Itoa(version)))
		at.Epoch = epoch
		if err := r.Commit(t.Context(), tarn.Batch[string]{Changes: changes, Positions: []tarn.Position{at}, LastContact: time.Unix(int64(version), 0)}); err != nil {
			t.Fatal(err)
		}
	}
	find := func(version int) Seq {
		t.Helper()
		place, err := r.AtVersion(t.Context(), tarn.Version(strconv.Itoa(version)))
		if err != nil || len(place.Gaps) > 0 {
			t.Fatalf("version %d: %v, %v", version, place, err)
		}
		return place.Seq
	}
	const quiet = 10_000
	commit(1, "", tarn.Change[string]{Type: tarn.Add, Key: "a", Object: "1", Version: "1"})
	for i := range quiet {
		commit(2+2*i, "")
	}
	commit(3*quiet, "", tarn.Change[string]{Type: tarn.Update, Key: "a", Object: "2", Version: tarn.Version(strconv.Itoa(3*quiet - 5))})
	for i := range quiet {
		commit(3*quiet+1+i, "")
	}
	if n := len(r.moments); n > 10 {
		t.Errorf("%d commits, of which two had changes, left %d moments", 2*quiet+2, n)
	}
	for _, version := range []int{1, 2, 7, quiet, 2 * quiet, 3*quiet - 6} {
		if seq := find(version); seq != 1 {
			t.Errorf("version %d is at %d", version, seq)
		}
	}
	for _, version := range []int{3*quiet - 5, 3*quiet - 1, 3 * quiet, 3*quiet + 7, 4 * quiet} {
		if seq := find(version); seq != 2 {
			t.Errorf("version %d is at %d", version, seq)
		}
	}
	commit(5, "again")
	commit(9, "again")
	if _, err := r.AtVersion(t.Context(), "10"); !errors.Is(err, ErrAhead) {
		t.Errorf("a version from before the rewind: %v", err)
	}
	if _, err := r.AtVersion(t.Context(), "4"); !errors.Is(err, ErrExpired) {
		t.Errorf("a version from before the rewind: %v", err)
	}
	if seq := find(7); seq != 2 {
		t.Errorf("a version after the rewind is at %d", seq)
	}
}
