package share

import (
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// Equal compares two values of a type as a sharer compares parts: to the bit.
func Equal(t reflect.Type, a, b unsafe.Pointer) bool {
	c := comparer{compares: maxReads}
	return c.equal(planFor(t, false), a, b, 0)
}

// comparer compares values by their plans. It bounds how much of one object is
// compared, because a part that several references reach is compared once for
// each.
type comparer struct {
	compares int
	// mapped says that the value being read is in a map, so that nobody can
	// write to it in place.
	mapped bool
	// fetched is of no use but that what was fetched is read.
	fetched byte
}

// equal compares two values of a type to the bit: floats by their bits, times
// with their location, nil and empty apart. It reads no deeper than hash did. A
// value that cannot be shared equals nothing.
func (c *comparer) equal(p *plan, a, b unsafe.Pointer, depth int) bool {
	if c.compares--; depth > maxDepth || c.compares < 0 {
		return false
	}
	for i := range p.steps {
		s := &p.steps[i]
		x, y := unsafe.Add(a, s.off), unsafe.Add(b, s.off)
		if s.kind == memoryStep {
			if !equalMemory(x, y, uintptr(s.size)) {
				return false
			}
			continue
		}
		if s.kind == lazyStep {
			if !c.mapped && shape.IsLazy(x) {
				return false
			}
			continue // its text is a step of its own
		}
		if shape.IsNil(x) && shape.IsNil(y) {
			continue
		}
		switch s.kind {
		case stringStep:
			if *(*string)(x) != *(*string)(y) {
				return false
			}
		case sliceStep:
			x, y := (*shape.SliceHeader)(x), (*shape.SliceHeader)(y)
			if x.Len != y.Len || x.Ptr == nil || y.Ptr == nil || x.Len > 0 && !c.equalPart(s, x.Ptr, y.Ptr, x.Len, depth) {
				return false
			}
		case pointerStep, mapStep:
			if shape.IsNil(x) || shape.IsNil(y) || !c.equalPart(s, *(*unsafe.Pointer)(x), *(*unsafe.Pointer)(y), 1, depth) {
				return false
			}
		case treeStep:
			if !c.equalTree(*(*map[string]any)(x), *(*map[string]any)(y), depth) {
				return false
			}
		case jsonStep:
			if !c.equalTree(*(*any)(x), *(*any)(y), depth) {
				return false
			}
		default: // these are plain data only if they are nil
			return false
		}
	}
	return true
}

// equalPart compares what two references of one type lead to.
func (c *comparer) equalPart(s *step, a, b unsafe.Pointer, n, depth int) bool {
	if a == b {
		return true
	}
	mapped := c.mapped
	c.mapped = s.kind == mapStep
	same := c.equalElements(s, a, b, n, depth+1)
	c.mapped = mapped
	return same
}

func (c *comparer) equalElements(s *step, a, b unsafe.Pointer, n, depth int) bool {
	switch {
	case s.kind == mapStep:
		return s.reader.equal(c, a, b, depth)
	case s.elem.opaque:
		return false
	case s.elem.memory:
		return equalMemory(a, b, s.elem.size*uintptr(n))
	}
	c.fetch(s.elem, b, n)
	for i := range n {
		off := uintptr(i) * s.elem.size
		if !c.equal(s.elem, unsafe.Add(a, off), unsafe.Add(b, off), depth) {
			return false
		}
	}
	return true
}

func equalMemory(a, b unsafe.Pointer, size uintptr) bool {
	switch size {
	case 1:
		return *(*uint8)(a) == *(*uint8)(b)
	case 4:
		return *(*uint32)(a) == *(*uint32)(b)
	case 8:
		return *(*uint64)(a) == *(*uint64)(b)
	default:
		return unsafe.String((*byte)(a), size) == unsafe.String((*byte)(b), size)
	}
}
