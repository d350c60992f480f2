package apiserver

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// collection holds the objects of one resource and what happened to them.
//
// The entries are a sorted slice: lists want ranges in the order of keys, and
// moving pointers for an insert costs less than 50 µs at 100,000 objects. All of
// it is guarded by the lock of the state it belongs to.
type collection struct {
	*storage
	entries []*Object
	history history
	// gone is closed when the resource is no longer served.
	gone  chan struct{}
	ended bool
}

func newCollection(kind schema.GroupVersionKind, custom bool) *collection {
	return &collection{storage: &storage{kind: kind, custom: custom}, gone: make(chan struct{}), history: newHistory()}
}

// end notifies watchers that the resource is no longer served.
func (c *collection) end() {
	if !c.ended {
		close(c.gone)
		c.ended = true
		c.history.wake()
	}
}

// serveAgain undoes end: the resource is served again.
func (c *collection) serveAgain() {
	if c.ended {
		c.gone, c.ended = make(chan struct{}), false
	}
}

func (c *collection) position(key string) (int, bool) {
	return slices.BinarySearchFunc(c.entries, key, func(e *Object, key string) int { return strings.Compare(e.key, key) })
}

// find returns the newest version of an object, nil if it is not there.
func (c *collection) find(key string) *Object {
	if i, ok := c.position(key); ok {
		return c.entries[i]
	}
	return nil
}

func (c *collection) put(e *Object) {
	i, ok := c.position(e.key)
	if ok {
		c.entries[i] = e
		return
	}
	c.entries = slices.Insert(c.entries, i, e)
}

func (c *collection) remove(key string) {
	if i, ok := c.position(key); ok {
		c.entries = slices.Delete(c.entries, i, i+1)
	}
}

// span returns the entries of a namespace, all if it is empty, as a copy.
func (c *collection) span(namespace string) []*Object {
	if namespace == "" {
		return slices.Clone(c.entries)
	}
	from, _ := c.position(namespace + "/")
	to, _ := c.position(namespace + "0") // '0' follows '/'
	return slices.Clone(c.entries[from:to])
}

// at returns the entries of a namespace as they were at a version that the
// history still reaches.
func (c *collection) at(namespace string, version int64) []*Object {
	undone := map[string]*Object{}
	for _, change := range slices.Backward(c.history.events) {
		if change.Version <= version {
			break
		}
		undone[change.Object.key] = change.Old
	}
	entries := c.span(namespace)
	if len(undone) == 0 {
		return entries
	}
	entries = slices.DeleteFunc(entries, func(e *Object) bool { _, changed := undone[e.key]; return changed })
	for _, e := range undone {
		if e != nil && (namespace == "" || e.namespace() == namespace) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b *Object) int { return strings.Compare(a.key, b.key) })
	return entries
}
