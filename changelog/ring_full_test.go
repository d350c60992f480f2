package changelog_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/changelog/logtest"
)

// A commit to a full ring does not copy the ring: what it allocates does not grow with the entries.
func TestCommitToAFullRing(t *testing.T) {
	const commits = 200
	allocated := func(entries int) uint64 {
		commit := fullRing(t, entries)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range commits {
			commit()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / commits
	}
	// Now and then the list of entries moves, which for 5,000 takes 50 KB.
	if few, many := allocated(1_000), allocated(5_000); many > few+10_000 {
		t.Errorf("a commit allocates %d bytes with 1,000 entries, and %d with 5,000", few, many)
	}
}

// fullRing returns a function that commits one change to a ring that has about so many entries, and
// drops the oldest for each new one.
func fullRing(t testing.TB, entries int) (commit func()) {
	r, err := changelog.NewRing(changelog.RingOptions[logtest.Object]{Bytes: int64(entries) * 220, Append: logtest.Append})
	if err != nil {
		t.Fatal(err)
	}
	n, now := 0, time.UnixMilli(1_780_000_000_000)
	commit = func() {
		n++
		v := tarn.Version(strconv.Itoa(n))
		o := logtest.Object{Key: tarn.Key(fmt.Sprint("ns/", n%100)), Version: v, Text: strconv.Itoa(n)}
		err := r.Commit(t.Context(), tarn.Batch[logtest.Object]{
			Changes:   []tarn.Change[logtest.Object]{{Type: tarn.Update, Key: o.Key, Version: v, Object: o, Heard: now}},
			Positions: []tarn.Position{tarn.At(v)}, LastContact: now,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * entries {
		commit()
	}
	if bounds, _ := r.Bounds(t.Context()); int(bounds.Last)-int(bounds.First) < entries/2 || int(bounds.First) < entries/2 {
		t.Fatalf("the ring is not full: %+v", bounds)
	}
	return commit
}

// BenchmarkFullRing is a commit of one change to a ring that is full.
func BenchmarkFullRing(b *testing.B) {
	for _, entries := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			commit := fullRing(b, entries)
			for b.Loop() {
				commit()
			}
		})
	}
}
