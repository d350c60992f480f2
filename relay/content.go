package relay

import (
	"maps"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/apiserver"
)

// content is the objects of a resource, in the order of their keys.
//
// Lists get the slice itself. It is copied by the first write after that: a thousand
// lists between two writes share one copy.
type content struct {
	objects []*apiserver.Object
	shared  bool
}

func find(objects []*apiserver.Object, key string) (int, bool) {
	return slices.BinarySearchFunc(objects, key, func(o *apiserver.Object, key string) int { return strings.Compare(o.Key(), key) })
}

func (c *content) get(key string) *apiserver.Object {
	if i, ok := find(c.objects, key); ok {
		return c.objects[i]
	}
	return nil
}

func (c *content) own() {
	if c.shared {
		c.objects, c.shared = slices.Clone(c.objects), false
	}
}

// set replaces the object under a key, nil for none, and returns the one before.
func (c *content) set(key string, o *apiserver.Object) (before *apiserver.Object) {
	i, found := find(c.objects, key)
	if found {
		before = c.objects[i]
	}
	if !found && o == nil {
		return nil
	}
	c.own()
	switch {
	case o == nil:
		c.objects = slices.Delete(c.objects, i, i+1)
	case found:
		c.objects[i] = o
	default:
		c.objects = slices.Insert(c.objects, i, o)
	}
	return before
}

// replace sets many objects at once. Inserting them one by one would move all later objects
// each time.
func (c *content) replace(by map[string]*apiserver.Object) {
	if len(by) > 0 {
		c.objects, c.shared = with(c.objects, by), false
	}
}

// span returns the objects of a namespace, all if it is empty. A caller that keeps them
// sets shared first.
func (c *content) span(namespace string) []*apiserver.Object { return within(c.objects, namespace) }

func within(objects []*apiserver.Object, namespace string) []*apiserver.Object {
	if namespace == "" {
		return slices.Clip(objects)
	}
	from, _ := find(objects, namespace+"/")
	to, _ := find(objects, namespace+"0") // '0' follows '/'
	return slices.Clip(objects[from:to])
}

// with returns the objects with some replaced, or removed if they are nil. If only a few are
// replaced, it takes as long as a copy.
func with(objects []*apiserver.Object, replaced map[string]*apiserver.Object) []*apiserver.Object {
	if len(replaced) == 0 {
		return objects
	}
	merged := make([]*apiserver.Object, 0, len(objects)+len(replaced))
	for _, key := range slices.Sorted(maps.Keys(replaced)) {
		i, found := find(objects, key)
		merged = append(merged, objects[:i]...)
		if o := replaced[key]; o != nil {
			merged = append(merged, o)
		}
		if found {
			i++
		}
		objects = objects[i:]
	}
	return append(merged, objects...)
}
