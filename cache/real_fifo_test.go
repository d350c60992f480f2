package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAtomicReplaceFailsAsAWhole(t *testing.T) {
	f := NewRealFIFOWithOptions(RealFIFOOptions{KeyFunction: queueObjectKey, AtomicEvents: true, Transformer: pickyTransform})
	err := f.Replace([]any{queueObject{"a", 1}, queueObject{"b", -1}, queueObject{"c", -2}}, "3")
	if err == nil {
		t.Fatal("an object left out of an atomic list would be deleted")
	}
	for _, want := range []string{"2 of its 3 objects", "cache.queueObject b: refused", "cache.queueObject c: the transform panicked on a cache.queueObject: boom"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if f.HasSynced() || len(popAll(f)) > 0 {
		t.Error("part of the list was taken")
	}
}

// batches pops everything by PopBatch and gives the keys of each batch.
func batches(f *RealFIFO) (popped []string) {
	f.Close()
	one := func(obj any, initial bool) error {
		popped = append(popped, fmt.Sprintf("single %v %v", obj, initial))
		return nil
	}
	many := func(deltas []Delta, initial bool) error {
		popped = append(popped, fmt.Sprintf("batch %v %v", deltas, initial))
		return nil
	}
	for f.PopBatch(many, one) == nil {
	}
	return popped
}

func TestBatches(t *testing.T) {
	o := func(name string, val int) Delta { return Delta{Type: Updated, Object: queueObject{name, val}} }
	bookmark := Delta{Type: Bookmark, Object: BookmarkInfo{ResourceVersion: "9"}}
	nameless := Delta{Type: Updated, Object: 42}
	for _, c := range []struct {
		name  string
		items []Delta
		want  []string
	}{
		{"one", []Delta{o("a", 1)}, []string{"single [{Updated {a 1}}] false"}},
		{"different objects", []Delta{o("a", 1), o("b", 2)}, []string{"batch [{Updated {a 1}} {Updated {b 2}}] false"}},
		{"the same object again", []Delta{o("a", 1), o("b", 2), o("a", 3)}, []string{"batch [{Updated {a 1}} {Updated {b 2}}] false", "single [{Updated {a 3}}] false"}},
		{"a bookmark between", []Delta{o("a", 1), bookmark, o("b", 2)}, []string{"single [{Updated {a 1}}] false", "single [{Bookmark {9}}] false", "single [{Updated {b 2}}] false"}},
		{"a nameless object ends the batch", []Delta{o("a", 1), nameless, o("b", 2)}, []string{"batch [{Updated {a 1}} {Updated 42}] false", "single [{Updated {b 2}}] false"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := NewRealFIFO(queueObjectKey, &queueConsumer{}, nil)
			f.initial.populate(0)
			f.items = c.items
			if diff := cmp.Diff(c.want, batches(f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBatchesAreBoundedAndEndWithTheFirstList(t *testing.T) {
	f := NewRealFIFO(queueObjectKey, &queueConsumer{}, nil)
	var list []any
	for i := range 2500 {
		list = append(list, queueObject{fmt.Sprint("listed", i), i})
	}
	if err := f.Replace(list, "1"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := f.Add(queueObject{fmt.Sprint("added", i), i}); err != nil {
			t.Fatal(err)
		}
	}
	var sizes []string
	f.Close()
	for f.PopBatch(func(deltas []Delta, initial bool) error {
		sizes = append(sizes, fmt.Sprint(len(deltas), " initial=", initial))
		return nil
	}, nil) == nil {
	}
	want := []string{"1000 initial=true", "1000 initial=true", "500 initial=true", "3 initial=false"}
	if diff := cmp.Diff(want, sizes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An entry popped before the first list does not belong to it, even if its consumer
// was still busy when the list came.
func TestFirstListWhileAnEarlierEntryIsProcessed(t *testing.T) {
	f := NewRealFIFOWithOptions(RealFIFOOptions{KeyFunction: queueObjectKey, AtomicEvents: true, EmitDeltaTypeBookmark: true, UnlockWhileProcessing: true})
	if err := f.Bookmark("1"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Pop(func(any, bool) error { return f.Replace([]any{queueObject{"a", 1}}, "2") }); err != nil {
		t.Fatal(err)
	}
	if f.HasSynced() {
		t.Error("synced before the list was processed")
	}
	if _, err := f.Pop(func(any, bool) error { return nil }); err != nil || !f.HasSynced() {
		t.Errorf("error %v, synced %v", err, f.HasSynced())
	}
}

func TestLongQueueHoldsItsProducerUp(t *testing.T) {
	f := NewRealFIFOWithOptions(RealFIFOOptions{KeyFunction: queueObjectKey, AtomicEvents: true, UnlockWhileProcessing: true})
	free := func() (free bool) {
		_, _ = f.Pop(func(any, bool) error {
			if free = f.mu.TryLock(); free {
				f.mu.Unlock()
			}
			return nil
		})
		return free
	}
	for i := range 2*largestBatch + 1 {
		_ = f.Add(queueObject{"a", i})
	}
	if free() {
		t.Error("a queue of two batches takes more while its consumer works")
	}
	if !free() {
		t.Error("a shorter queue takes nothing while its consumer works")
	}
}

func TestConsumersPanicLeavesTheQueueUsable(t *testing.T) {
	f := NewRealFIFOWithOptions(RealFIFOOptions{KeyFunction: queueObjectKey, AtomicEvents: true, UnlockWhileProcessing: true})
	_ = f.Add(queueObject{"a", 1})
	func() {
		defer func() { _ = recover() }()
		_, _ = f.Pop(func(any, bool) error { panic("handler") })
	}()
	if err := f.Add(queueObject{"b", 2}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(popAll(f)); got != "[[{Added {b 2}}]]" {
		t.Errorf("popped %s", got)
	}
}

func TestRealFIFOOptionsThatContradict(t *testing.T) {
	known := &queueConsumer{}
	for name, opts := range map[string]RealFIFOOptions{
		"atomic with known objects":     {AtomicEvents: true, KnownObjects: known},
		"neither atomic nor known":      {},
		"unlocked but not atomic":       {KnownObjects: known, UnlockWhileProcessing: true},
		"with bookmarks but not atomic": {KnownObjects: known, EmitDeltaTypeBookmark: true},
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "RealFIFOOptions") {
					t.Errorf("%s: recovered %v", name, err)
				}
			}()
			NewRealFIFOWithOptions(opts)
		}()
	}
}

func TestRealFIFONames(t *testing.T) {
	for _, c := range []struct {
		opts RealFIFOOptions
		want string
	}{
		{RealFIFOOptions{}, "RealFIFO"},
		{RealFIFOOptions{Name: "given"}, "given"},
		{RealFIFOOptions{Name: "given", Identifier: reserved(t)}, t.Name()},
	} {
		c.opts.AtomicEvents = true
		if got := NewRealFIFOWithOptions(c.opts).Name(); !strings.HasPrefix(got, c.want) {
			t.Errorf("name %q, want %q", got, c.want)
		}
	}
}
