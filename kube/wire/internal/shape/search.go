package shape

import (
	"reflect"
	"unsafe"
)

// Search finds the objects that have one of several pieces of memory.
type Search struct {
	Memory map[unsafe.Pointer]bool
	left   int
}

// Find returns the field of an object that leads to the memory; ok says that there is one.
func (s *Search) Find(object any) (field string, ok bool) {
	t := reflect.TypeOf(object)
	if object == nil || t.Kind() != reflect.Pointer && t.Kind() != reflect.Map {
		return "", false
	}
	s.left = MaxRefs
	if !s.visit(RefTo(t), Memory{Boxed(object), 1}, 0) {
		return "", false
	}
	field, _ = s.path("", reflect.ValueOf(object), 0)
	return field, true
}

func (s *Search) visit(r *Ref, x Memory, depth int) bool {
	if s.Memory[x.Ptr] {
		return true
	}
	if s.left--; s.left < 0 || depth > MaxDepth || x.Ptr == nil {
		return false
	}
	switch r.Kind {
	case Pointer:
		return s.block(r.Elem, x.Ptr, 1, depth)
	case Slice:
		return s.block(r.Elem, x.Ptr, x.N, depth)
	case Map:
		return s.table(r, x.Ptr, depth)
	case TreeMap:
		return s.tree(*(*map[string]any)(unsafe.Pointer(&x.Ptr)), depth)
	default:
		return false
	}
}

func (s *Search) block(of *Shape, at unsafe.Pointer, n, depth int) bool {
	if len(of.Refs) == 0 {
		return false
	}
	for i := range n {
		base := unsafe.Add(at, uintptr(i)*of.Size)
		for j := range of.Refs {
			r := &of.Refs[j]
			if field := unsafe.Add(base, r.Offset); !IsNil(field) && s.reference(r, field, depth+1) {
				return true
			}
		}
	}
	return false
}

func (s *Search) reference(r *Ref, field unsafe.Pointer, depth int) bool {
	switch r.Kind {
	case Tree:
		return s.tree(*(*any)(field), depth)
	case Slice:
		list := (*SliceHeader)(field)
		return s.visit(r, Memory{list.Ptr, list.Len}, depth)
	default:
		return s.visit(r, Memory{*(*unsafe.Pointer)(field), 1}, depth)
	}
}

func (s *Search) table(r *Ref, m unsafe.Pointer, depth int) bool {
	if len(r.Elem.Refs) == 0 {
		return false
	}
	value := reflect.New(r.Type.Elem())
	for i := reflect.NewAt(r.Type, unsafe.Pointer(&m)).Elem().MapRange(); i.Next(); {
		value.Elem().SetIterValue(i)
		if s.block(r.Elem, value.UnsafePointer(), 1, depth+1) {
			return true
		}
	}
	return false
}

// tree searches a tree. A list in it is identified by the interface that holds it.
func (s *Search) tree(v any, depth int) bool {
	if s.left--; s.left < 0 || depth > MaxDepth {
		return false
	}
	switch x := v.(type) {
	case map[string]any:
		if s.Memory[Boxed(v)] {
			return true
		}
		for _, member := range x {
			if s.tree(member, depth+1) {
				return true
			}
		}
	case []any:
		if s.Memory[Boxed(v)] {
			return true
		}
		for _, element := range x {
			if s.tree(element, depth+1) {
				return true
			}
		}
	}
	return false
}

// path is where in a value the memory is. It takes longer than the search, and is
// only called after a find.
func (s *Search) path(field string, v reflect.Value, depth int) (string, bool) {
	if depth > MaxDepth {
		return "", false
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if found, ok := s.path(under(field, JSONName(f)), v.Field(i), depth+1); ok {
					return found, true
				}
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			if s.Memory[v.UnsafePointer()] {
				return field, true
			}
			if u, ok := v.Interface().(interface{ UnstructuredContent() map[string]any }); ok {
				return s.path(field, reflect.ValueOf(u.UnstructuredContent()), depth+1)
			}
			return s.path(field, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Len() > 0 && s.Memory[v.UnsafePointer()] {
			return field, true
		}
		for i := range v.Len() {
			if found, ok := s.path(field, v.Index(i), depth+1); ok {
				return found, true
			}
		}
	case reflect.Map:
		if s.Memory[v.UnsafePointer()] {
			return field, true
		}
		for i := v.MapRange(); i.Next(); {
			if found, ok := s.path(under(field, i.Key().String()), i.Value(), depth+1); ok {
				return found, true
			}
		}
	case reflect.Interface:
		if v.Type() == AnyType && !v.IsNil() {
			if s.Memory[Boxed(v.Interface())] {
				return field, true
			}
			return s.path(field, v.Elem(), depth+1)
		}
	}
	return "", false
}
