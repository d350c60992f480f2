package memory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tarnproject/tarn"
)

// TestHistory records concurrent writes and reads, and then compares the reads with
// the states: every read must show a state that was the newest at some moment
// between its beginning and its end, and the states of consecutive reads must not
// go back.
func TestHistory(t *testing.T) {
	const keys, writes, readers = 40, 3000, 4
	s := New[int]()
	if err := s.AddIndexes(map[string]func(int) ([]string, error){"mod": func(o int) ([]string, error) { return []string{strconv.Itoa(o % 7)}, nil }}); err != nil {
		t.Fatal(err)
	}
	// One goroutine writes the states, so that they are known; begun and ended
	// bound which of them a read can have seen.
	states := make([]map[tarn.Key]int, writes+1)
	states[0] = map[tarn.Key]int{}
	var begun, ended atomic.Int64
	done := make(chan struct{})
	var reading sync.WaitGroup
	type sight struct {
		what   string
		lo, hi int64
		check  func(state map[tarn.Key]int) bool
	}
	sights := make([][]sight, readers)
	for r := range readers {
		reading.Go(func() {
			random := rand.New(rand.NewPCG(uint64(r), 1))
			for {
				select {
				case <-done:
					return
				default:
				}
				lo := ended.Load()
				var seen sight
				switch key := tarn.Key(fmt.Sprintf("%02d", random.IntN(keys))); random.IntN(6) {
				case 0:
					o, ok := s.Get(key)
					seen = sight{what: "Get", check: func(state map[tarn.Key]int) bool { want, there := state[key]; return there == ok && want == o }}
				case 1:
					all := maps.Collect(s.All())
					seen = sight{what: "All", check: func(state map[tarn.Key]int) bool { return maps.Equal(state, all) }}
				case 2:
					n := s.Len()
					seen = sight{what: "Len", check: func(state map[tarn.Key]int) bool { return len(state) == n }}
				case 3:
					found, err := s.ByIndex("mod", "3")
					if err != nil {
						t.Error(err)
					}
					seen = sight{what: "ByIndex", check: func(state map[tarn.Key]int) bool {
						var want []int
						for _, key := range slices.Sorted(maps.Keys(state)) {
							if state[key]%7 == 3 {
								want = append(want, state[key])
							}
						}
						return slices.Equal(want, found)
					}}
				case 4:
					v := s.Version()
					n, _ := strconv.ParseInt(string(v), 10, 64)
					seen = sight{what: "Version " + string(v)}
					hi := begun.Load()
					if n < lo || n > hi {
						t.Errorf("Version %d outside of %d to %d", n, lo, hi)
					}
					continue
				case 5:
					snap := s.Snapshot()
					n, _ := strconv.Atoi("0" + string(snap.Version()))
					all := maps.Collect(snap.All())
					again := map[tarn.Key]int{}
					for i := range keys {
						key := tarn.Key(fmt.Sprintf("%02d", i))
						if o, ok := snap.Get(key); ok {
							again[key] = o
						}
					}
					snap.Close()
					if !maps.Equal(all, again) {
						t.Errorf("a snapshot shows %v by All and %v by Get", all, again)
					}
					seen = sight{what: "Snapshot", lo: int64(n), hi: int64(n), check: func(state map[tarn.Key]int) bool { return maps.Equal(state, all) }}
					sights[r] = append(sights[r], seen)
					continue
				}
				seen.lo, seen.hi = lo, begun.Load()
				sights[r] = append(sights[r], seen)
			}
		})
	}
	random := rand.New(rand.NewPCG(7, 7))
	for n := 1; n <= writes; n++ {
		state := maps.Clone(states[n-1])
		var changes []tarn.Change[int]
		size := 1
		if random.IntN(10) == 0 {
			size = random.IntN(2 * keys)
		}
		for range size {
			key := tarn.Key(fmt.Sprintf("%02d", random.IntN(keys)))
			if random.IntN(3) == 0 {
				delete(state, key)
				changes = append(changes, tarn.Change[int]{Type: tarn.Delete, Key: key})
			} else {
				state[key] = random.IntN(1000)
				changes = append(changes, tarn.Change[int]{Type: tarn.Update, Key: key, Object: state[key]})
			}
		}
		states[n] = state
		begun.Store(int64(n))
		version := tarn.Version(strconv.Itoa(n))
		var err error
		if random.IntN(20) == 0 {
			var items []tarn.Item[int]
			for key, o := range state {
				items = append(items, tarn.Item[int]{Meta: tarn.Meta{Key: key}, Object: o})
			}
			err = s.Replace(items, tarn.At(version))
		} else {
			err = s.Apply(changes, tarn.At(version))
		}
		if err != nil {
			t.Fatal(err)
		}
		ended.Store(int64(n))
	}
	close(done)
	reading.Wait()
	for r, seen := range sights {
		last := int64(0)
		for _, look := range seen {
			at := int64(-1)
			for n := max(look.lo, last); n <= look.hi; n++ {
				if look.check(states[n]) {
					at = n
					break
				}
			}
			if at < 0 {
				t.Fatalf("reader %d: %s showed no state from %d (it had seen %d) to %d", r, look.what, look.lo, last, look.hi)
			}
			last = at
		}
	}
	if wrong := s.sound(); wrong != "" {
		t.Error(wrong)
	}
	s.SetVersion("")
	if s.pinned.Load() != 0 || len(s.stale.held) != 0 || s.stale.size.Load() != 0 {
		t.Errorf("readers are gone, but %d pins, %d states and %d old versions are there", s.pinned.Load(), len(s.stale.held), s.stale.size.Load())
	}
}

// A snapshot that nobody refers to is released.
func TestForgottenSnapshot(t *testing.T) {
	s := filled(t, map[tarn.Key]string{"a": "1"})
	func() {
		if snap := s.Snapshot(); snap.Len() != 1 {
			t.Error("not one object")
		}
	}()
	for i := 0; s.pinned.Load() > 0; i++ {
		if i == 1000 {
			t.Fatal("the snapshot is still held after 1000 collections")
		}
		runtime.GC()
		runtime.Gosched()
	}
	snap := s.Snapshot()
	snap.Close()
	snap.Close()
	if n := s.pinned.Load(); n != 0 {
		t.Errorf("%d states held after Close", n)
	}
}

// Old versions stay while they can be seen, and not longer, however many writes
// follow.
func TestOldVersionsGo(t *testing.T) {
	s := New[int]()
	put := func(n int) {
		for i := range 200 {
			if err := s.Put(tarn.Key(strconv.Itoa(i)), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(1)
	old := s.Snapshot()
	for n := range 50 {
		put(n)
		s.Snapshot().Close()
	}
	for i := range 200 {
		chain := 0
		for v := s.table.find(tarn.Key(strconv.Itoa(i))).head.Load(); v != nil; v = v.before.Load() {
			chain++
		}
		if chain > 2 {
			t.Fatalf("%d has %d versions for two states", i, chain)
		}
	}
	for _, o := range old.All() {
		if o != 1 {
			t.Fatalf("the snapshot shows %d", o)
		}
	}
	old.Close()
	if n := s.stale.size.Load(); n != 0 {
		t.Errorf("%d cells keep old versions that nobody sees", n)
	}
}

// Get never allocates, a walk not per object.
func TestReadsDoNotAllocate(t *testing.T) {
	s := New[*int]()
	for i := range 1000 {
		_ = s.Put(tarn.Key(fmt.Sprintf("key-%04d", i)), new(int))
	}
	if n := testing.AllocsPerRun(100, func() { s.Get("key-0500") }); n != 0 {
		t.Errorf("Get: %v allocations", n)
	}
	walk := func() {
		for range s.All() {
		}
	}
	walk()
	walk()
	if n := testing.AllocsPerRun(10, walk); n > 8 {
		t.Errorf("All of 1000 objects: %v allocations", n)
	}
}

func TestPrefixAndRange(t *testing.T) {
	s := filled(t, map[tarn.Key]string{"a/1": "", "a/2": "", "a0": "", "b/1": "", "\xff\xff": ""})
	for i := range 300 {
		_ = s.Put(tarn.Key(fmt.Sprintf("many/%03d", i)), "")
	}
	snap := s.Snapshot()
	for want, have := range map[string][]func(yield func(tarn.Key, string) bool){
		"[a/1 a/2]":           {s.Prefix("a/"), snap.Prefix("a/")},
		"[\xff\xff]":          {s.Prefix("\xff"), snap.Prefix("\xff")},
		"[]":                  {s.Prefix("zzz"), snap.Range("x", "a"), s.Range("b", "b")},
		"[a/2 a0]":            {s.Range("a/2", "b"), snap.Range("a/11", "b")},
		"[many/298 many/299]": {s.Range("many/298", "n"), s.Range("many/298", "many/3")},
		"[many/299 \xff\xff]": {s.Range("many/299", ""), snap.Range("many/299", "")},
	} {
		for i, found := range have {
			var keys []tarn.Key
			for key := range found {
				keys = append(keys, key)
			}
			if got := fmt.Sprint(keys); got != want {
				t.Errorf("%d: %s, want %s", i, got, want)
			}
		}
	}
}
