package shape

import (
	"bytes"
	"encoding/json"
	"reflect"
	"unsafe"
)

// Difference is a place where two objects differ.
type Difference struct {
	Field string
	// Memory is the first object's memory of the field: a list, a map, or what a
	// pointer points to; nil if it is the object itself.
	Memory unsafe.Pointer
}

// maxDifferences is how many differences are returned. Each is a piece of memory
// that was written to.
const maxDifferences = 32

// Differences compares two values of one type, and returns the first difference
// within each piece of memory that differs. An element of a list has the name of
// its list.
func Differences(field string, a, b reflect.Value) []Difference {
	c := comparison{}
	c.compare(field, a, b, nil, 0)
	return c.found
}

type comparison struct{ found []Difference }

func (c *comparison) add(field string, memory unsafe.Pointer) {
	for _, d := range c.found {
		if d.Memory == memory {
			return
		}
	}
	if len(c.found) < maxDifferences {
		c.found = append(c.found, Difference{field, memory})
	}
}

func (c *comparison) compare(field string, a, b reflect.Value, in unsafe.Pointer, depth int) {
	if depth > MaxDepth {
		return
	}
	switch a.Kind() {
	case reflect.Struct:
		if !exported(a.Type()) {
			break
		}
		for i := range a.NumField() {
			c.compare(under(field, JSONName(a.Type().Field(i))), a.Field(i), b.Field(i), in, depth+1)
		}
		return
	case reflect.Pointer:
		if a.IsNil() != b.IsNil() {
			c.add(field, in)
		} else if !a.IsNil() {
			c.compare(field, a.Elem(), b.Elem(), a.UnsafePointer(), depth+1)
		}
		return
	case reflect.Slice:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			c.add(field, in)
			return
		}
		for i := range a.Len() {
			c.compare(field, a.Index(i), b.Index(i), a.UnsafePointer(), depth+1)
		}
		return
	case reflect.Map:
		if !SameValue(a.Interface(), b.Interface()) {
			c.add(field, a.UnsafePointer())
		}
		return
	}
	if !SameValue(a.Interface(), b.Interface()) {
		c.add(field, in)
	}
}

// exported says whether all fields of a struct can be read.
func exported(t reflect.Type) bool {
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return false
		}
	}
	return true
}

// SameValue compares by content, and then by the JSON form: a quantity caches its
// text when String is called, which changes nothing.
func SameValue(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
