package cache

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// pickyTransform fails on objects by their value.
func pickyTransform(obj any) (any, error) {
	switch obj.(queueObject).Val {
	case -1:
		return nil, errors.New("refused")
	case -2:
		panic("boom")
	}
	return obj, nil
}

// popAll gives what is in a queue, as text.
func popAll(q Queue) (popped []string) {
	q.Close()
	for {
		deltas, err := q.Pop(func(any, bool) error { return nil })
		if err != nil {
			return popped
		}
		popped = append(popped, fmt.Sprint(deltas))
	}
}

// oneLine cuts the stack off that a report of a panic has.
func oneLine(reports []string) (lines []string) {
	for _, report := range reports {
		line, _, _ := strings.Cut(report, "\n")
		lines = append(lines, line)
	}
	return lines
}

func TestReplaceGoesOnWithoutBadObjects(t *testing.T) {
	list := []any{queueObject{"a", 1}, queueObject{"refused", -1}, 42, queueObject{"panics", -2}, queueObject{"new refused", -1}, queueObject{"b", 2}}
	known := func() *queueConsumer {
		return &queueConsumer{store: map[string]any{
			"a": queueObject{"a", 0}, "refused": queueObject{"refused", 0}, "panics": queueObject{"panics", 0}, "gone": queueObject{"gone", 0},
		}}
	}
	for _, c := range []struct {
		name  string
		queue Queue
		want  []string
	}{
		{
			"DeltaFIFO",
			NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: queueObjectKey, KnownObjects: known(), Transformer: pickyTransform, EmitDeltaTypeReplaced: true}),
			[]string{"[{Replaced {a 1}}]", "[{Replaced {b 2}}]", "[{Deleted {gone {gone 0}}}]"},
		},
		{
			"RealFIFO",
			NewRealFIFO(queueObjectKey, known(), pickyTransform),
			[]string{"[{Deleted {gone {gone 0}}}]", "[{Replaced {a 1}}]", "[{Replaced {b 2}}]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			handled := collectHandledErrors(t)
			if err := c.queue.Replace(list, "5"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, popAll(c.queue)); diff != "" {
				t.Errorf("popped (-want +got):\n%s", diff)
			}
			if !c.queue.HasSynced() {
				t.Error("one bad object keeps the queue from syncing")
			}
			want := []string{
				"An object of the list was left out; the object stored under its key stays [key refused type cache.queueObject]: refused",
				"An object of the list was left out; the object stored under its key stays [key  type int]: couldn't create key for object 42: int has no name",
				"An object of the list was left out; the object stored under its key stays [key panics type cache.queueObject]: the transform panicked on a cache.queueObject: boom",
				"An object of the list was left out; the object stored under its key stays [key new refused type cache.queueObject]: refused",
			}
			got := oneLine(*handled)
			if c.name == "RealFIFO" { // keys are looked at first, transforms applied later
				want[0], want[1] = want[1], want[0]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadSingleChangesAreErrors(t *testing.T) {
	for name, queue := range map[string]Queue{
		"DeltaFIFO": NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: queueObjectKey, Transformer: pickyTransform}),
		"RealFIFO":  NewRealFIFO(queueObjectKey, &queueConsumer{}, pickyTransform),
	} {
		for _, c := range []struct {
			obj  any
			want string
		}{
			{queueObject{"x", -1}, "refused"},
			{queueObject{"x", -2}, "the transform panicked on a cache.queueObject: boom"},
			{42, "couldn't create key for object 42: int has no name"},
		} {
			for _, err := range []error{queue.Add(c.obj), queue.Update(c.obj)} {
				if err == nil || !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("%s: got error %v, want %s", name, err, c.want)
				}
			}
		}
		if err := queue.Delete(42); !errors.As(err, &KeyError{}) {
			t.Errorf("%s: delete without key: %v", name, err)
		}
		if popped := popAll(queue); len(popped) > 0 {
			t.Errorf("%s: bad changes were queued: %s", name, popped)
		}
	}
}

func TestDeletionSurvivesItsTransform(t *testing.T) {
	known := &queueConsumer{store: map[string]any{"x": queueObject{"x", 7}}}
	for _, c := range []struct {
		name  string
		queue Queue
		want  string
	}{
		{"DeltaFIFO", NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: queueObjectKey, KnownObjects: known, Transformer: pickyTransform}), "[[{Deleted {x {x 7}}}]]"},
		{"RealFIFO", NewRealFIFO(queueObjectKey, known, pickyTransform), "[[{Deleted {x <nil>}}]]"},
	} {
		handled := collectHandledErrors(t)
		if err := c.queue.Delete(queueObject{"x", -1}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := fmt.Sprint(popAll(c.queue)); got != c.want {
			t.Errorf("%s: popped %s, want %s", c.name, got, c.want)
		}
		if len(*handled) != 1 {
			t.Errorf("%s: reported %q", c.name, *handled)
		}
	}
}

func TestQueueIsSyncedWhenTheLastIsProcessed(t *testing.T) {
	for name, queue := range map[string]Queue{
		"DeltaFIFO": NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: queueObjectKey}),
		"RealFIFO":  NewRealFIFO(queueObjectKey, &queueConsumer{}, nil),
	} {
		if err := queue.Replace([]any{queueObject{"a", 1}, queueObject{"b", 2}}, "2"); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			_, err := queue.Pop(func(_ any, isInInitialList bool) error {
				if queue.HasSynced() || IsDone(queue.HasSyncedChecker()) || !isInInitialList {
					t.Errorf("%s: synced while the first list was being processed", name)
				}
				return fmt.Errorf("error %d", i)
			})
			if err == nil || err.Error() != fmt.Sprintf("error %d", i) {
				t.Errorf("%s: the consumer's error is lost: %v", name, err)
			}
		}
		if !queue.HasSynced() || !IsDone(queue.HasSyncedChecker()) {
			t.Errorf("%s: not synced", name)
		}
	}
}

func TestCloseEndsPop(t *testing.T) {
	for name, queue := range map[string]interface {
		QueueWithBatch
		IsClosed() bool
	}{
		"DeltaFIFO": struct {
			*DeltaFIFO
			noBatch
		}{DeltaFIFO: NewDeltaFIFO(queueObjectKey, nil)},
		"RealFIFO": NewRealFIFO(queueObjectKey, &queueConsumer{}, nil),
	} {
		synctest.Test(t, func(t *testing.T) {
			errs := make(chan error, 2)
			go func() {
				_, err := queue.Pop(nil)
				errs <- err
			}()
			go func() { errs <- queue.PopBatch(nil, nil) }()
			synctest.Wait()
			if queue.IsClosed() {
				t.Errorf("%s: closed already", name)
			}
			queue.Close()
			for range 2 {
				if err := <-errs; !errors.Is(err, ErrFIFOClosed) {
					t.Errorf("%s: got %v", name, err)
				}
			}
			if !queue.IsClosed() {
				t.Errorf("%s: not closed", name)
			}
		})
	}
}

// noBatch lets a queue without batches into a test of those with.
type noBatch struct{}

func (noBatch) PopBatch(ProcessBatchFunc, PopProcessFunc) error { return ErrFIFOClosed }

// brokenStore lists a key that it cannot give.
type brokenStore struct{ err error }

func (brokenStore) ListKeys() []string                   { return []string{"a"} }
func (s brokenStore) GetByKey(string) (any, bool, error) { return nil, false, s.err }

func TestDeletionIsToldWithoutAnObjectThatCannotBeRead(t *testing.T) {
	for _, store := range []brokenStore{{}, {errors.New("disk on fire")}} {
		for name, queue := range map[string]Queue{
			"DeltaFIFO": NewDeltaFIFO(queueObjectKey, store),
			"RealFIFO":  NewRealFIFO(queueObjectKey, store, nil),
		} {
			collectHandledErrors(t)
			if err := errors.Join(queue.Resync(), queue.Replace(nil, "")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := fmt.Sprint(popAll(queue)); got != "[[{Deleted {a <nil>}}]]" {
				t.Errorf("%s: popped %s", name, got)
			}
		}
	}
}

func TestDeltaFIFONames(t *testing.T) {
	if name := NewDeltaFIFO(nil, nil).Name(); name != "DeltaFIFO" {
		t.Errorf("default name %q", name)
	}
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Name: "pods", Transformer: pickyTransform})
	if f.Name() != "pods" || f.HasSyncedChecker().Name() != "pods" || f.Transformer() == nil {
		t.Errorf("name %q, transformer set: %v", f.Name(), f.Transformer() != nil)
	}
}

func TestDeltaFIFOKeyOf(t *testing.T) {
	f := NewDeltaFIFO(queueObjectKey, nil)
	a, b := queueObject{"a", 1}, queueObject{"b", 2}
	for _, c := range []struct {
		obj  any
		key  string
		fail error
	}{
		{a, "a", nil},
		{Deltas{{Type: Added, Object: a}, {Type: Updated, Object: b}}, "b", nil},
		{Deltas{{Type: Deleted, Object: DeletedFinalStateUnknown{Key: "k"}}}, "k", nil},
		{DeletedFinalStateUnknown{Key: "k", Obj: a}, "k", nil},
		{Deltas{}, "", ErrZeroLengthDeltasObject},
	} {
		if key, err := f.KeyOf(c.obj); key != c.key || !errors.Is(err, c.fail) {
			t.Errorf("KeyOf(%v) = %q, %v", c.obj, key, err)
		}
	}
}
