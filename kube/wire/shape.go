package wire

import (
	"reflect"
	"sync"
)

// shape says where in the memory of a Go type there are references to other memory.
// With it the memory that an object consists of is walked without reflection.
//
// It is not the plan of a [Sharer], which has every field: to see that memory is as it
// was, its bytes are hashed as they lie there, and only references need to be known.
type shape struct {
	typ  reflect.Type
	size uintptr
	refs []ref
}

// ref is a reference: one within a shape, or one that leads to a part.
type ref struct {
	kind refKind
	// off is where in its shape the reference is.
	off uint32
	// elem is what a pointer points to, a slice consists of, or a map has as values.
	elem *shape
	// typ is that of the pointer, slice or map.
	typ reflect.Type
}

type refKind uint8

const (
	refPointer refKind = iota
	refSlice
	refMap
	// refTree is an any, refTreeMap a map[string]any, refTreeList a pointer to a
	// []any: what JSON is decoded to without a type.
	refTree
	refTreeMap
	refTreeList
)

// digestDepth and digestRefs bound how far references are followed: objects have no
// cycles, but what has one must not hang. What lies deeper is not verified.
const (
	digestDepth = 256
	digestRefs  = 1 << 20
)

// shapes are those of all types that were asked for. A shape is in the table before it
// is complete, so that types may contain themselves.
var shapes = struct {
	sync.Mutex
	byType map[reflect.Type]*shape
	toPart map[reflect.Type]*ref
}{byType: map[reflect.Type]*shape{}, toPart: map[reflect.Type]*ref{}}

// refOf is the reference by which a value of type t, a slice, map or pointer, leads to
// its part; nil if t is none of them.
func refOf(t reflect.Type) *ref {
	shapes.Lock()
	defer shapes.Unlock()
	if r, ok := shapes.toPart[t]; ok {
		return r
	}
	var holder shape
	holder.add(t, 0)
	var r *ref
	if len(holder.refs) == 1 && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		r = &holder.refs[0]
	}
	if t == freeListType {
		r = &ref{kind: refTreeList, typ: t}
	}
	shapes.toPart[t] = r
	return r
}

// findShape returns the shape of a type. The lock is held.
func findShape(t reflect.Type) *shape {
	if s := shapes.byType[t]; s != nil {
		return s
	}
	s := &shape{typ: t, size: t.Size()}
	shapes.byType[t] = s
	s.add(t, 0)
	return s
}

// add appends the references that a value of type t at off has. Unexported fields are
// not followed: only their owner knows what their pointers mean. Text is not followed
// either, because nobody can write to it: a field that was given another text refers to
// other memory.
func (s *shape) add(t reflect.Type, off uintptr) {
	r := ref{off: uint32(off), typ: t}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				s.add(f.Type, off+f.Offset)
			}
		}
		return
	case reflect.Array:
		for i := range t.Len() {
			s.add(t.Elem(), off+uintptr(i)*t.Elem().Size())
		}
		return
	case reflect.Pointer:
		r.kind, r.elem = refPointer, findShape(t.Elem())
	case reflect.Slice:
		r.kind, r.elem = refSlice, findShape(t.Elem())
	case reflect.Map:
		if t == freeMapType {
			r.kind = refTreeMap
		} else {
			r.kind, r.elem = refMap, findShape(t.Elem())
		}
	case reflect.Interface:
		if t != anyType {
			return
		}
		r.kind = refTree
	default:
		return
	}
	s.refs = append(s.refs, r)
}
