package tarn

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

func TestQuarantine(t *testing.T) {
	var q quarantine
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	bad := func(key Key, text string) BadObject { return BadObject{Key: key, Err: errors.New(text)} }
	put := func(b BadObject, taken bool, now, since int64, news bool) {
		t.Helper()
		got, isNews := q.put(b, taken, at(now))
		if got.Key != b.Key || got.Err != b.Err || !got.Since.Equal(at(since)) || isNews != news {
			t.Errorf("put returned %+v, news %v; want it bad since %d, news %v", got, isNews, since, news)
		}
	}
	want := func(content string, count int) {
		t.Helper()
		list, n := q.list()
		var words []string
		for _, b := range list {
			words = append(words, fmt.Sprintf("%s: %v since %d", b.Key, b.Err, b.Since.Unix()))
		}
		if got := strings.Join(words, ", "); got != content || n != count {
			t.Errorf("it holds %q, %d in all; want %q, %d", got, n, content, count)
		}
		if q.empty() != (content == "") {
			t.Errorf("empty is %v", q.empty())
		}
	}

	want("", 0)
	put(bad("b", "no spec"), false, 1, 1, true)
	put(bad("a", "no index"), true, 2, 2, true)
	want("a: no index since 2, b: no spec since 1", 2)

	put(bad("b", "no spec"), false, 3, 1, false)
	put(bad("b", "no name"), false, 4, 1, true)
	want("a: no index since 2, b: no name since 1", 2)

	put(bad("", "garbled"), false, 5, 5, true)
	put(bad("", "garbled"), false, 6, 6, true)
	want("a: no index since 2, b: no name since 1", 4)

	held := func(Key) verdict { return asHeld }
	q.settle(held, 1) // a is as the store has it, and that was the trouble
	want("a: no index since 2", 2)
	q.clear(Meta{Key: "a"}, false)
	q.clear(Meta{Key: "nobody"}, true)
	want("a: no index since 2", 2)
	q.clear(Meta{Key: "a"}, true)
	want("", 1)
	put(bad("a", "no index"), false, 9, 9, true)
	q.settle(func(Key) verdict { return stillBad }, 0)
	want("a: no index since 9", 1)
	q.settle(func(Key) verdict { return good }, 0)
	want("", 0)
}

// Health must stay readable when everything is bad.
func TestQuarantineListsTheFirst(t *testing.T) {
	var q quarantine
	for i := range 3 * maxBadListed {
		q.put(BadObject{Key: Key(fmt.Sprintf("%04d", i)), Err: errors.New("bad")}, false, time.Unix(0, 0))
	}
	list, count := q.list()
	if len(list) != maxBadListed || count != 3*maxBadListed || list[0].Key != "0000" || list[maxBadListed-1].Key != "0099" {
		t.Errorf("%d are listed, from %q to %q, of %d", len(list), list[0].Key, list[len(list)-1].Key, count)
	}
}

// A stack is reported once and not held for as long as the object is bad.
func TestQuarantineKeepsNoStacks(t *testing.T) {
	var q quarantine
	var err error
	func() {
		defer recoverTo(&err, "describing the object")
		panic("boom")
	}()
	told, _ := q.put(BadObject{Key: "a", Err: err}, false, time.Unix(0, 0))
	if !strings.Contains(told.Err.Error(), "goroutine") {
		t.Errorf("what is told has no stack: %v", told.Err)
	}
	list, _ := q.list()
	if want := "panic while describing the object: boom"; list[0].Err.Error() != want {
		t.Errorf("held is %q, want %q", list[0].Err, want)
	}
}

// What every write asks for, and what Health lists, must be the same as by a walk of all.
func TestQuarantineKeepsCounts(t *testing.T) {
	for seed := range uint64(testsize.Of(20, 2)) {
		var q quarantine
		random := rand.New(rand.NewPCG(seed, 1))
		for range 3000 {
			key := Key(fmt.Sprintf("%04d", random.IntN(300)))
			switch random.IntN(8) {
			case 0, 1, 2, 3, 4:
				q.put(BadObject{Key: key, Err: fmt.Errorf("bad in way %d", random.IntN(3))}, random.IntN(20) > 0, time.Unix(0, 0))
			case 5, 6:
				q.clear(Meta{Key: key}, random.IntN(2) > 0)
			case 7:
				if random.IntN(40) == 0 {
					q.settle(func(key Key) verdict { return verdict(random.IntN(3)) }, 0)
				}
			}
			missing := false
			for _, b := range q.byKey {
				missing = missing || !b.taken
			}
			if q.incomplete() != missing {
				t.Fatalf("seed %d: incomplete is %v, a walk says %v", seed, q.incomplete(), missing)
			}
			keys := slices.Sorted(maps.Keys(q.byKey))
			list, n := q.list()
			if n != len(keys) || len(list) != min(n, maxBadListed) {
				t.Fatalf("seed %d: %d listed, %d counted, of %d", seed, len(list), n, len(keys))
			}
			for i, b := range list {
				if b.Key != keys[i] || b.Err != q.byKey[b.Key].Err {
					t.Fatalf("seed %d: number %d of the list is %v, want %v", seed, i, b, q.byKey[keys[i]].BadObject)
				}
			}
		}
	}
}

// An index function can fail for every object. Health must not copy and sort them all.
func TestQuarantineOfManyIsCheapToList(t *testing.T) {
	bytesOf := func(n int) float64 {
		var q quarantine
		for i := range n {
			q.put(BadObject{Key: Key(fmt.Sprintf("%08d", i)), Err: errors.New("bad")}, true, time.Unix(0, 0))
		}
		q.list()
		const rounds = 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range rounds {
			q.put(BadObject{Key: Key(fmt.Sprintf("%08d", n-i-1)), Err: errors.New("bad")}, true, time.Unix(0, 0))
			q.list()
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / rounds
	}
	few, many := bytesOf(200), bytesOf(50_000)
	if many > 2*few {
		t.Errorf("listing allocates %.0f bytes with 200 bad objects, %.0f with 50,000", few, many)
	}
}
