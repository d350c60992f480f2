package cache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	upstream "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

// The tests in this file make the same random calls to client-go's queues and to
// ours, each with a consumer that keeps a store of its own, and compare what the
// consumers are given, as text.

type queueObject struct {
	Name string
	Val  int
}

func queueObjectKey(obj any) (string, error) {
	if o, ok := obj.(queueObject); ok {
		return o.Name, nil
	}
	return "", fmt.Errorf("%T has no name", obj)
}

// countTransform shows in the object how often it was transformed.
func countTransform(obj any) (any, error) {
	o := obj.(queueObject)
	o.Val += 1000
	return o, nil
}

// queueConsumer pops a queue into a store, which the queue knows.
type queueConsumer struct {
	queue Queue
	store map[string]any
	seen  []string
}

func (c *queueConsumer) ListKeys() []string {
	var keys []string
	for key := range c.store {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (c *queueConsumer) GetByKey(key string) (any, bool, error) {
	obj, ok := c.store[key]
	return obj, ok, nil
}

func (c *queueConsumer) process(obj any, isInInitialList bool) error {
	return c.processBatch(obj.(Deltas), isInInitialList)
}

func (c *queueConsumer) processBatch(deltas []Delta, isInInitialList bool) error {
	c.seen = append(c.seen, fmt.Sprintf("%v initial=%v", deltas, isInInitialList))
	for _, delta := range deltas {
		switch obj := delta.Object.(type) {
		case queueObject:
			if delta.Type == Deleted {
				delete(c.store, obj.Name)
			} else {
				c.store[obj.Name] = obj
			}
		case DeletedFinalStateUnknown:
			delete(c.store, obj.Key)
		case ReplacedAllInfo:
			clear(c.store)
			for _, o := range obj.Objects {
				c.store[o.(queueObject).Name] = o
			}
		}
	}
	return nil
}

func (c *queueConsumer) pop() {
	if _, err := c.queue.Pop(c.process); err != nil {
		c.seen = append(c.seen, err.Error())
	}
}

func (c *queueConsumer) popBatch() {
	if err := c.queue.(QueueWithBatch).PopBatch(c.processBatch, c.process); err != nil {
		c.seen = append(c.seen, err.Error())
	}
}

func (c *queueConsumer) log(err error) {
	c.seen = append(c.seen, fmt.Sprintf("err=%v synced=%v done=%v", err, c.queue.HasSynced(), IsDone(c.queue.HasSyncedChecker())))
}

// drain empties the queue.
func (c *queueConsumer) drain() {
	c.queue.Close()
	for n := len(c.seen); ; n = len(c.seen) {
		c.pop()
		if c.seen[n] == ErrFIFOClosed.Error() {
			return
		}
	}
}

// compareQueues runs random calls. length gives the length of our queue: an empty
// one would block its Pop.
func compareQueues(t *rapid.T, ours, theirs *queueConsumer, length func() int, more map[string]func(call func(func(c *queueConsumer) error))) {
	val := 0
	object := func(t *rapid.T) queueObject {
		val++
		return queueObject{rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"), val}
	}
	call := func(do func(c *queueConsumer) error) {
		ours.log(do(ours))
		theirs.log(do(theirs))
	}
	actions := map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			o := object(t)
			call(func(c *queueConsumer) error { return c.queue.Add(o) })
		},
		"update": func(t *rapid.T) {
			o := object(t)
			call(func(c *queueConsumer) error { return c.queue.Update(o) })
		},
		"delete": func(t *rapid.T) {
			o := object(t)
			call(func(c *queueConsumer) error { return c.queue.Delete(o) })
		},
		"delete unknown": func(t *rapid.T) {
			o := object(t)
			call(func(c *queueConsumer) error {
				return c.queue.Delete(DeletedFinalStateUnknown{Key: o.Name, Obj: o})
			})
		},
		"replace": func(t *rapid.T) {
			var list []any
			for range rapid.IntRange(0, 5).Draw(t, "length") {
				list = append(list, object(t))
			}
			call(func(c *queueConsumer) error { return c.queue.Replace(slices.Clone(list), "7") })
		},
		"resync": func(t *rapid.T) {
			call(func(c *queueConsumer) error { return c.queue.Resync() })
		},
		"pop": func(t *rapid.T) {
			if length() > 0 {
				call(func(c *queueConsumer) error { c.pop(); return nil })
			}
		},
		"": func(t *rapid.T) {
			if o, w := strings.Join(ours.seen, "\n"), strings.Join(theirs.seen, "\n"); o != w {
				t.Fatalf("ours:\n%s\nclient-go's:\n%s", o, w)
			}
		},
	}
	for name, action := range more {
		actions[name] = func(*rapid.T) { action(call) }
	}
	t.Repeat(actions)
	call(func(c *queueConsumer) error { c.drain(); return nil })
	actions[""](t)
}

func TestDeltaFIFOLikeClientGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours, theirs := &queueConsumer{store: map[string]any{}}, &queueConsumer{store: map[string]any{}}
		options := func(c *queueConsumer) DeltaFIFOOptions {
			return DeltaFIFOOptions{KeyFunction: queueObjectKey, KnownObjects: c}
		}
		o, w := options(ours), options(theirs)
		if rapid.Bool().Draw(t, "nothing known") {
			o.KnownObjects, w.KnownObjects = nil, nil
		}
		if rapid.Bool().Draw(t, "transform") {
			o.Transformer, w.Transformer = countTransform, countTransform
		}
		o.EmitDeltaTypeReplaced = rapid.Bool().Draw(t, "replaced")
		w.EmitDeltaTypeReplaced = o.EmitDeltaTypeReplaced

		queue := NewDeltaFIFOWithOptions(o)
		ours.queue, theirs.queue = queue, upstream.NewDeltaFIFOWithOptions(w)
		compareQueues(t, ours, theirs, func() int { return len(queue.order) }, nil)
	})
}

func TestRealFIFOLikeClientGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours, theirs := &queueConsumer{store: map[string]any{}}, &queueConsumer{store: map[string]any{}}
		options := func(c *queueConsumer) RealFIFOOptions {
			return RealFIFOOptions{KeyFunction: queueObjectKey, KnownObjects: c}
		}
		o, w := options(ours), options(theirs)
		if rapid.Bool().Draw(t, "atomic") {
			o.KnownObjects, w.KnownObjects = nil, nil
			o.AtomicEvents, w.AtomicEvents = true, true
			o.EmitDeltaTypeBookmark = rapid.Bool().Draw(t, "bookmarks")
			w.EmitDeltaTypeBookmark = o.EmitDeltaTypeBookmark
			o.UnlockWhileProcessing = rapid.Bool().Draw(t, "unlock")
			w.UnlockWhileProcessing = o.UnlockWhileProcessing
		}
		if rapid.Bool().Draw(t, "transform") {
			o.Transformer, w.Transformer = countTransform, countTransform
		}
		queue := NewRealFIFOWithOptions(o)
		ours.queue, theirs.queue = queue, upstream.NewRealFIFOWithOptions(w)
		length := func() int { return len(queue.items) }
		compareQueues(t, ours, theirs, length, map[string]func(func(func(c *queueConsumer) error)){
			"pop batch": func(call func(func(c *queueConsumer) error)) {
				if length() > 0 {
					call(func(c *queueConsumer) error { c.popBatch(); return nil })
				}
			},
			"bookmark": func(call func(func(c *queueConsumer) error)) {
				call(func(c *queueConsumer) error {
					return c.queue.(interface{ Bookmark(string) error }).Bookmark("8")
				})
			},
			"nameless": func(call func(func(c *queueConsumer) error)) {
				call(func(c *queueConsumer) error {
					if err := c.queue.Add(3); !errors.As(err, &KeyError{}) {
						return fmt.Errorf("not a KeyError: %w", err)
					}
					return nil
				})
			},
		})
	})
}
