package share

import (
	"maps"
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// The pool must not be offered memory of an object that somebody else may have: its owner
// may change it, and every object that has the part would show that. So a part of such an
// object is cloned, with everything below it, when the pool does not have it yet. That is
// rare where it matters: of a thousand equal parts one is cloned.
//
// What is cloned has been hashed, so it is plain data and it ends.

// ownPart makes a part that the pool can be offered out of a part of somebody's object.
// Nothing of an earlier state is used, because that may be somebody's too.
func (w *worker) ownPart(s *step, x shape.Memory, cur, depth int) shape.Memory {
	x = w.clone(s, x)
	w.inPlace, w.cloned = true, true
	made := w.below(s, x, shape.Memory{}, x.N, cur, depth)
	w.inPlace, w.cloned = false, false
	return made
}

// ownTree is ownPart for a map or list of a tree.
func (w *worker) ownTree(v any, where uint64, depth int) any {
	w.inPlace = true
	made, _ := w.treeBelow(cloneTree(v), nil, where, unhashed, depth)
	w.inPlace = false
	return made
}

func (w *worker) clone(s *step, x shape.Memory) shape.Memory {
	if s.kind == mapStep {
		return shape.Memory{Ptr: s.reader.clone(w, x.Ptr), N: 1}
	}
	b := block{w: w, src: x.Ptr, of: s.elem, n: x.N}
	if s.kind == sliceStep {
		b.slice = s
	}
	b.copy()
	for i := range x.N {
		w.cloneBelow(s.elem, unsafe.Add(b.dst, uintptr(i)*s.elem.size))
	}
	return shape.Memory{Ptr: b.dst, N: x.N}
}

// cloneBelow clones what a value leads to that has been copied.
func (w *worker) cloneBelow(p *plan, value unsafe.Pointer) {
	if p.leaf {
		return
	}
	for i := range p.steps {
		s := &p.steps[i]
		at := unsafe.Add(value, s.off)
		if s.kind == memoryStep || s.kind == lazyStep || shape.IsNil(at) {
			continue
		}
		switch s.kind {
		case sliceStep:
			if x := *(*shape.SliceHeader)(at); x.Len > 0 {
				y := w.clone(s, shape.Memory{Ptr: x.Ptr, N: x.Len})
				*(*shape.SliceHeader)(at) = shape.SliceHeader{Ptr: y.Ptr, Len: y.N, Cap: y.N}
			}
		case pointerStep, mapStep:
			*(*unsafe.Pointer)(at) = w.clone(s, shape.Memory{Ptr: *(*unsafe.Pointer)(at), N: 1}).Ptr
		case treeStep:
			*(*map[string]any)(at) = cloneTree(*(*map[string]any)(at)).(map[string]any)
		case jsonStep:
			*(*any)(at) = cloneTree(*(*any)(at))
		}
	}
}

func cloneTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		own := make(map[string]any, len(v))
		for key, value := range v {
			own[key] = cloneTree(value)
		}
		return own
	case []any:
		if v == nil {
			return v
		}
		own := make([]any, len(v))
		for i, value := range v {
			own[i] = cloneTree(value)
		}
		return own
	default:
		return v
	}
}

func (stringMap) clone(_ *worker, m unsafe.Pointer) unsafe.Pointer {
	own := maps.Clone(*(*map[string]string)(unsafe.Pointer(&m)))
	return *(*unsafe.Pointer)(unsafe.Pointer(&own))
}

func (t typedMap[V]) clone(w *worker, m unsafe.Pointer) unsafe.Pointer {
	given := *(*map[string]V)(unsafe.Pointer(&m))
	own := make(map[string]V, len(given))
	for k, v := range given {
		w.cloneBelow(t.elem, unsafe.Pointer(&v))
		own[k] = v
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&own))
}

func (t *reflectMap) clone(w *worker, m unsafe.Pointer) unsafe.Pointer {
	given := reflect.NewAt(t.t, unsafe.Pointer(&m)).Elem()
	own := reflect.MakeMapWithSize(t.t, given.Len())
	elem := reflect.New(t.elem.t)
	for i := given.MapRange(); i.Next(); {
		elem.Elem().SetIterValue(i)
		w.cloneBelow(t.elem, elem.UnsafePointer())
		own.SetMapIndex(i.Key(), elem.Elem())
	}
	return own.UnsafePointer()
}

func (opaqueMap) clone(_ *worker, m unsafe.Pointer) unsafe.Pointer { return m }
