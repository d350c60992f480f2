package shape

import (
	"reflect"
	"sync"
)

// Shape says where in the memory of a Go type there are references to other memory.
// With it the memory of an object is walked without reflection.
//
// It is not the plan by which package share compares, which has every field: to
// find a write, memory is hashed byte by byte, and only references need to be
// known.
type Shape struct {
	typ  reflect.Type
	Size uintptr
	Refs []Ref
}

// Ref is a reference: a field of a shape, or the one that leads to a whole part.
type Ref struct {
	Kind RefKind
	// Offset is where in its shape the reference is.
	Offset uint32
	// Elem is what a pointer points to, a slice consists of, or a map has as values.
	Elem *Shape
	// Type is that of the pointer, slice or map.
	Type reflect.Type
}

// RefKind says what a reference is.
type RefKind uint8

const (
	Pointer RefKind = iota
	Slice
	Map
	// Tree is an any, TreeMap a map[string]any, TreeList a pointer to a []any: what JSON
	// is decoded to without a type.
	Tree
	TreeMap
	TreeList
)

// MaxDepth and MaxRefs bound how far references are followed: objects have no
// cycles, but a value that has one must not hang. Memory that lies deeper is not
// verified.
const (
	MaxDepth = 256
	MaxRefs  = 1 << 20
)

// shapes are those of all types so far. A shape is in the table before it is
// complete, so that types may contain themselves.
var shapes = struct {
	sync.Mutex
	byType map[reflect.Type]*Shape
	toPart map[reflect.Type]*Ref
}{byType: map[reflect.Type]*Shape{}, toPart: map[reflect.Type]*Ref{}}

// RefTo is the reference by which a value of type t, a slice, map or pointer, leads
// to its part; nil for other types.
func RefTo(t reflect.Type) *Ref {
	shapes.Lock()
	defer shapes.Unlock()
	if r, ok := shapes.toPart[t]; ok {
		return r
	}
	var holder Shape
	holder.add(t, 0)
	var r *Ref
	if len(holder.Refs) == 1 && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		r = &holder.Refs[0]
	}
	if t == UntypedListType {
		r = &Ref{Kind: TreeList, Type: t}
	}
	shapes.toPart[t] = r
	return r
}

// findShape returns the shape of a type. The lock is held.
func findShape(t reflect.Type) *Shape {
	if s := shapes.byType[t]; s != nil {
		return s
	}
	s := &Shape{typ: t, Size: t.Size()}
	shapes.byType[t] = s
	s.add(t, 0)
	return s
}

// add appends the references of a value of type t at off. Unexported fields are not
// followed: only their owner knows what their pointers mean. Text is not followed
// either, because nobody can write to it: a field with another text refers to other
// memory.
func (s *Shape) add(t reflect.Type, off uintptr) {
	r := Ref{Offset: uint32(off), Type: t}
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
		r.Kind, r.Elem = Pointer, findShape(t.Elem())
	case reflect.Slice:
		r.Kind, r.Elem = Slice, findShape(t.Elem())
	case reflect.Map:
		if t == UntypedMapType {
			r.Kind = TreeMap
		} else {
			r.Kind, r.Elem = Map, findShape(t.Elem())
		}
	case reflect.Interface:
		if t != AnyType {
			return
		}
		r.Kind = Tree
	default:
		return
	}
	s.Refs = append(s.Refs, r)
}
