package recent_test

import (
	"fmt"
	"hash/maphash"
	"testing"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/recent"
)

// A slot holds the value that was stored last.
func TestTableReplaces(t *testing.T) {
	var table recent.Table[string]
	if !table.Empty() {
		t.Error("a new table is not empty")
	}
	*table.Slot(3, 8) = "first"
	if got := *table.Slot(3, 8); got != "first" || table.Empty() {
		t.Errorf("found %q", got)
	}
	*table.Slot(3+8, 8) = "second"
	if got := *table.Slot(3, 8); got != "second" {
		t.Errorf("found %q, want what was stored last", got)
	}
	if got := *table.Slot(4, 8); got != "" {
		t.Errorf("found %q under another hash", got)
	}
}

// A text is known from the second time on, and is always the same string.
func TestTextsAdmitOnSecondSight(t *testing.T) {
	var texts recent.Texts
	seed := maphash.MakeSeed()
	raw := []byte("default-scheduler")
	if _, known := texts.Get(seed, raw); known {
		t.Error("a text is known when it is seen for the first time")
	}
	second, known := texts.Get(seed, raw)
	third, still := texts.Get(seed, raw)
	if !known || !still || second != string(raw) || unsafe.StringData(second) != unsafe.StringData(third) {
		t.Errorf("second %q %v, third %q %v", second, known, third, still)
	}
	raw[0] = 'D'
	if second != "default-scheduler" {
		t.Errorf("the text is now %q: it lies in the bytes that were given", second)
	}
}

// Texts that are seen once do not push out one that repeats.
func TestTextsKeepWhatRepeats(t *testing.T) {
	var texts recent.Texts
	seed := maphash.MakeSeed()
	texts.Get(seed, []byte("Running"))
	found := 0
	for n := range 10 * recent.TextSlots {
		texts.Get(seed, fmt.Appendf(nil, "pod-%d", n))
		if _, known := texts.Get(seed, []byte("Running")); known {
			found++
		}
	}
	if found != 10*recent.TextSlots {
		t.Errorf("found %d times in %d", found, 10*recent.TextSlots)
	}
}

// A field whose content never repeats is tried less and less often, and a field
// that begins to repeat is detected.
func TestRepetitionPauses(t *testing.T) {
	var r recent.Repetition
	tried := func(n int, hit bool) (tries int) {
		for range n {
			if r.Try() {
				tries++
				r.Record(hit)
			}
		}
		return tries
	}
	if first, later := tried(1000, false), tried(1000, false); first >= 500 || later >= first {
		t.Errorf("%d and then %d of 1000 contents are looked up, and none repeats", first, later)
	}
	tried(10_000, true)
	if got := tried(1000, true); got != 1000 || r.Rare {
		t.Errorf("%d of 1000 contents are looked up, and all repeat; rare %v", got, r.Rare)
	}
	for n := range 64 {
		r.Record(n%5 == 0)
	}
	if !r.Try() || !r.Rare {
		t.Errorf("one hit in five: rare %v, want it tried and rare", r.Rare)
	}
}
