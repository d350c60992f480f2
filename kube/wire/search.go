package wire

import (
	"reflect"
	"unsafe"
)

// search finds the objects that have some pieces of memory.
type search struct {
	memory map[unsafe.Pointer]bool
	left   int
}

// in returns the field by which an object leads to the memory; ok says that it does.
func (s *search) in(object any) (field string, ok bool) {
	t := reflect.TypeOf(object)
	if object == nil || t.Kind() != reflect.Pointer && t.Kind() != reflect.Map {
		return "", false
	}
	s.left = digestRefs
	if !s.part(refOf(t), part{boxed(object), 1}, 0) {
		return "", false
	}
	field, _ = s.path("", reflect.ValueOf(object), 0)
	return field, true
}

func (s *search) part(r *ref, x part, depth int) bool {
	if s.memory[x.ptr] {
		return true
	}
	if s.left--; s.left < 0 || depth > digestDepth || x.ptr == nil {
		return false
	}
	switch r.kind {
	case refPointer:
		return s.block(r.elem, x.ptr, 1, depth)
	case refSlice:
		return s.block(r.elem, x.ptr, x.n, depth)
	case refMap:
		return s.table(r, x.ptr, depth)
	case refTreeMap:
		return s.tree(*(*map[string]any)(unsafe.Pointer(&x.ptr)), depth)
	default:
		return false
	}
}

func (s *search) block(of *shape, at unsafe.Pointer, n, depth int) bool {
	if len(of.refs) == 0 {
		return false
	}
	for i := range n {
		base := unsafe.Add(at, uintptr(i)*of.size)
		for j := range of.refs {
			r := &of.refs[j]
			if field := unsafe.Add(base, r.off); !isNil(field) && s.reference(r, field, depth+1) {
				return true
			}
		}
	}
	return false
}

func (s *search) reference(r *ref, field unsafe.Pointer, depth int) bool {
	switch r.kind {
	case refTree:
		return s.tree(*(*any)(field), depth)
	case refSlice:
		list := (*sliceHeader)(field)
		return s.part(r, part{list.ptr, list.len}, depth)
	default:
		return s.part(r, part{*(*unsafe.Pointer)(field), 1}, depth)
	}
}

func (s *search) table(r *ref, m unsafe.Pointer, depth int) bool {
	if len(r.elem.refs) == 0 {
		return false
	}
	value := reflect.New(r.typ.Elem())
	for i := reflect.NewAt(r.typ, unsafe.Pointer(&m)).Elem().MapRange(); i.Next(); {
		value.Elem().SetIterValue(i)
		if s.block(r.elem, value.UnsafePointer(), 1, depth+1) {
			return true
		}
	}
	return false
}

// tree looks into a tree. A list of one is known by the interface that holds it.
func (s *search) tree(v any, depth int) bool {
	if s.left--; s.left < 0 || depth > digestDepth {
		return false
	}
	switch x := v.(type) {
	case map[string]any:
		if s.memory[boxed(v)] {
			return true
		}
		for _, member := range x {
			if s.tree(member, depth+1) {
				return true
			}
		}
	case []any:
		if s.memory[boxed(v)] {
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

// path is where in a value the memory is. It takes longer than to find out whether it
// is there, and is only asked for then.
func (s *search) path(field string, v reflect.Value, depth int) (string, bool) {
	if depth > digestDepth {
		return "", false
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if found, ok := s.path(under(field, jsonName(f)), v.Field(i), depth+1); ok {
					return found, true
				}
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			if s.memory[v.UnsafePointer()] {
				return field, true
			}
			if u, ok := v.Interface().(interface{ UnstructuredContent() map[string]any }); ok {
				return s.path(field, reflect.ValueOf(u.UnstructuredContent()), depth+1)
			}
			return s.path(field, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Len() > 0 && s.memory[v.UnsafePointer()] {
			return field, true
		}
		for i := range v.Len() {
			if found, ok := s.path(field, v.Index(i), depth+1); ok {
				return found, true
			}
		}
	case reflect.Map:
		if s.memory[v.UnsafePointer()] {
			return field, true
		}
		for i := v.MapRange(); i.Next(); {
			if found, ok := s.path(under(field, i.Key().String()), i.Value(), depth+1); ok {
				return found, true
			}
		}
	case reflect.Interface:
		if v.Type() == anyType && !v.IsNil() {
			if s.memory[boxed(v.Interface())] {
				return field, true
			}
			return s.path(field, v.Elem(), depth+1)
		}
	}
	return "", false
}
