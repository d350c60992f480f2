package share

import (
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// plan says what lies where in a Go type's memory. It is compiled once, so that
// hashing, comparing and copying need no reflection.
//
// Fields of an embedded or nested struct are steps of the outer one, at their
// offset from its start. Padding is no field: it may hold anything, and is
// neither hashed nor compared.
type plan struct {
	t     reflect.Type
	id    int
	size  uintptr
	steps []step
	// leads are the offsets of what leads to other memory: see [comparer.fetch].
	leads []uint32
	// memory says that the type is one run of bytes without pointers or padding.
	memory bool
	// leaf says that nothing in the type can be shared by itself.
	leaf bool
	// opaque says that the type is not plain data: it is neither read nor
	// copied.
	opaque bool
}

// A step is one thing to read in a type's memory. There are many, and most lead
// to nil: a step is half a cache line, and rarely needed data is in reference.
type step struct {
	kind stepKind
	off  uint32
	size uint32 // of memory
	// elem is what a pointer points to, or a slice consists of.
	elem *plan
	*reference
}

// reference describes a step that leads to other memory.
type reference struct {
	seed   uint64       // tells parts of this type from others
	t      reflect.Type // of the slice, pointer or map
	reader mapReader    // how to read a map
	ref    *shape.Ref   // how to verify a part; nil for text
	// scalar says that it is a pointer to a single value, which is not shared by
	// itself.
	scalar bool
}

// toPart is the reference to the parts of a step; nil for text.
func (s *step) toPart() *shape.Ref { return s.ref }

type stepKind uint8

const (
	// memory holds no pointers, or pointers that are compared and not followed.
	memoryStep stepKind = iota
	stringStep
	sliceStep
	pointerStep
	mapStep
	// privateStep is a map[string]string that belongs to its object alone, ownListStep
	// a list.
	privateStep
	ownListStep
	// treeStep is a map[string]any, jsonStep an any.
	treeStep
	jsonStep
	// interfaceStep is plain only if it is nil.
	interfaceStep
	// lazyStep is a quantity, whose fields have steps of their own as well: see
	// [shape.IsLazy].
	lazyStep
)

// compiler makes plans, one for each type of the process. A plan is in the
// table before it is complete, so that types may contain themselves.
type compiler struct {
	mu      sync.Mutex
	plans   map[reflect.Type]*plan
	private bool
}

// compilers are the compilers for shared and for private metadata.
var compilers = map[bool]*compiler{
	false: {plans: map[reflect.Type]*plan{}},
	true:  {plans: map[reflect.Type]*plan{}, private: true},
}

func planFor(t reflect.Type, private bool) *plan {
	c := compilers[private]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plan(t)
}

func (c *compiler) plan(t reflect.Type) *plan {
	if p, ok := c.plans[t]; ok {
		return p
	}
	p := &plan{t: t, id: len(c.plans), size: t.Size()}
	c.plans[t] = p
	if p.size > math.MaxInt32 {
		p.opaque = true
		return p
	}
	f := fields{compiler: c, plan: p}
	f.add(t, 0, false)
	p.memory = len(p.steps) == 1 && p.steps[0].kind == memoryStep && uintptr(p.steps[0].size) == p.size
	p.leaf = true
	for i := range p.steps {
		if k := p.steps[i].kind; k != memoryStep && k != interfaceStep && k != lazyStep {
			p.leaf = false
		}
		if p.steps[i].leads() {
			p.leads = append(p.leads, p.steps[i].off)
		}
	}
	return p
}

// fields adds the steps of one type.
type fields struct {
	*compiler
	plan *plan
}

var lockerType = reflect.TypeFor[sync.Locker]()

// add appends the steps of a value at off. hidden says that it is in an
// unexported field: only its owner knows what its pointers mean.
func (f fields) add(t reflect.Type, off uintptr, hidden bool) {
	if isLock(t) {
		f.plan.opaque = true
		return
	}
	switch kind := t.Kind(); kind {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		f.plan.opaque = true
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if field.Name == "_" {
				continue
			}
			at := off + field.Offset
			if f.private && t == shape.ObjectMetaType && slices.Contains(shape.PrivateMetadata, shape.JSONName(field)) {
				f.own(field.Type, at)
				continue
			}
			f.add(field.Type, at, hidden || !field.IsExported())
		}
		if t == shape.QuantityType {
			f.step(step{kind: lazyStep, off: uint32(off)})
		}
	case reflect.Array:
		for i := range t.Len() {
			f.add(t.Elem(), off+uintptr(i)*t.Elem().Size(), hidden)
		}
	case reflect.String:
		f.step(step{kind: stringStep, off: uint32(off)})
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		f.reference(t, off, hidden)
	default:
		f.memory(off, t.Size())
	}
}

// own adds metadata that belongs to its object alone.
func (f fields) own(t reflect.Type, off uintptr) {
	if t.Kind() == reflect.Map {
		f.step(step{kind: privateStep, off: uint32(off)})
		return
	}
	f.reference(t, off, false)
	f.plan.steps[len(f.plan.steps)-1].kind = ownListStep
}

// reference adds a value that leads to other memory.
func (f fields) reference(t reflect.Type, off uintptr, hidden bool) {
	s := step{off: uint32(off), reference: &reference{seed: maphash.Comparable(seed, t), t: t, ref: shape.RefTo(t)}}
	switch kind := t.Kind(); {
	case hidden:
		f.memory(off, t.Size()) // compared, and not followed
		return
	case t == shape.UntypedMapType:
		s.kind = treeStep
	case t == shape.AnyType:
		s.kind = jsonStep
	case kind == reflect.Interface:
		s.kind = interfaceStep
	case kind == reflect.Map:
		s.kind, s.reader = mapStep, f.mapReaderOf(t)
	case kind == reflect.Slice:
		s.kind, s.elem = sliceStep, f.compiler.plan(t.Elem())
	default:
		s.kind, s.elem = pointerStep, f.compiler.plan(t.Elem())
		s.scalar = shape.IsScalar(t.Elem())
	}
	f.step(s)
}

// maxSteps is how long a plan may be. A larger type is an array of many, and
// not an API object.
const maxSteps = 4096

func (f fields) step(s step) {
	if len(f.plan.steps) >= maxSteps {
		f.plan.opaque = true
		return
	}
	f.plan.steps = append(f.plan.steps, s)
}

// memory adds bytes without pointers, to the run before if they follow it.
func (f fields) memory(off, size uintptr) {
	if size == 0 {
		return
	}
	if n := len(f.plan.steps); n > 0 {
		if last := &f.plan.steps[n-1]; last.kind == memoryStep && uintptr(last.off+last.size) == off {
			last.size += uint32(size)
			return
		}
	}
	f.plan.steps = append(f.plan.steps, step{kind: memoryStep, off: uint32(off), size: uint32(size)})
}

// isLock recognises types that must not be copied: locks, atomics, and types
// with a Lock method.
func isLock(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return isLock(t.Elem())
	case reflect.Struct:
		return t.PkgPath() == "sync" || t.PkgPath() == "sync/atomic" || reflect.PointerTo(t).Implements(lockerType)
	default:
		return false
	}
}
