package tarn

import (
	"fmt"
	"testing"
)

func TestTombstonesCoverWhatCameBefore(t *testing.T) {
	var stones tombstones
	if stones.covers("a", "1") {
		t.Error("nothing was deleted")
	}
	stones.put("a", "5")
	stones.put("b", "opaque")
	stones.put("c", "7")
	stones.put("c", "9")
	for _, test := range []struct {
		key     Key
		version Version
		want    bool
	}{
		{"a", "4", true},
		{"a", "5", false},
		{"a", "6", false},
		{"a", "", false},
		{"a", "opaque", false},
		{"b", "1", false},
		{"c", "8", true},
		{"d", "1", false},
	} {
		if got := stones.covers(test.key, test.version); got != test.want {
			t.Errorf("%s at %q is from before its delete: %v, want %v", test.key, test.version, got, test.want)
		}
	}
	stones.clear()
	if stones.covers("a", "4") {
		t.Error("cleared, it still remembers")
	}
}

// The latest are remembered, however many there were.
func TestTombstonesAreBounded(t *testing.T) {
	var stones tombstones
	const all = 3*maxTombstones + 17
	for i := range all {
		stones.put(Key(fmt.Sprint(i)), "5")
		stones.put(Key(fmt.Sprint(i)), "6") // again is no new one
	}
	if len(stones.at) != maxTombstones || len(stones.ring) != maxTombstones {
		t.Errorf("%d are remembered in a ring of %d", len(stones.at), len(stones.ring))
	}
	for i := range all {
		if got, want := stones.covers(Key(fmt.Sprint(i)), "5"), i >= all-maxTombstones; got != want {
			t.Fatalf("delete %d of %d is remembered: %v", i, all, got)
		}
	}
}
