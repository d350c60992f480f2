package memory

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// A decoder cuts all strings of an object out of one text. An object that was updated
// must leave no such text behind, neither by its key nor by a value of an index.
func TestStoreKeepsNoTextOfOldStates(t *testing.T) {
	const objects, size = 200, 64 << 10
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	state := func(i, size int) tarn.Change[string] {
		text := fmt.Sprintf("%04d", i) + strings.Repeat("x", size)
		return tarn.Change[string]{Type: tarn.Update, Key: tarn.Key(text[:4]), Object: text}
	}
	s := New[string]()
	if err := s.AddIndex("key", IndexFunc(func(text string) ([]string, error) { return []string{text[:4], text[1:4]}, nil })); err != nil {
		t.Fatal(err)
	}
	before := held()
	for _, batch := range []int{objects, 1} { // by rebuilding the indexes, and one by one
		for _, size := range []int{size, 10} {
			var changes []tarn.Change[string]
			for i := range objects {
				if changes = append(changes, state(i, size)); len(changes) == batch {
					if err := s.Apply(changes, tarn.At("1")); err != nil {
						t.Fatal(err)
					}
					changes = nil
				}
			}
		}
		if after := held(); after > before+objects*size/4 {
			t.Errorf("batches of %d: %d KiB are held for %d objects of 14 bytes", batch, (after-before)>>10, objects)
		}
		for i := range objects {
			if err := s.Apply([]tarn.Change[string]{{Type: tarn.Delete, Key: state(i, 0).Key}}, tarn.At("1")); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.KeepAlive(s)
}

// Keys of one write share blocks of text, and are right whatever their length.
func TestKeysOfOneWrite(t *testing.T) {
	const objects = 1000
	s := New[int]()
	var changes []tarn.Change[int]
	for i := range objects {
		key := fmt.Sprintf("%04d", i) + strings.Repeat("x", i)
		changes = append(changes, tarn.Change[int]{Type: tarn.Add, Key: tarn.Key(key), Object: i})
	}
	if err := s.Apply(changes, tarn.At("1")); err != nil {
		t.Fatal(err)
	}
	for i, key := range s.Keys() {
		if key != changes[i].Key {
			t.Fatalf("key %d is %q, want %q", i, key, changes[i].Key)
		}
		if object, ok := s.Get(key); !ok || object != i {
			t.Fatalf("%q is %d, %v", key, object, ok)
		}
	}
}

// A write of many objects makes no allocation for each key.
func TestKeysOfOneWriteAllocateTogether(t *testing.T) {
	const objects = 1000
	changes := make([]tarn.Change[*int], objects)
	for i := range changes {
		changes[i] = tarn.Change[*int]{Type: tarn.Add, Key: tarn.Key(fmt.Sprintf("namespace/object-%04d", i))}
	}
	allocations := testing.AllocsPerRun(5, func() {
		if err := New[*int]().Apply(changes, tarn.At("1")); err != nil {
			t.Fatal(err)
		}
	})
	// A cell and a version each, and what the table and the tree take.
	if each := allocations / objects; each > 2.5 {
		t.Errorf("%.2f allocations for each object, want at most 2.5", each)
	}
}
