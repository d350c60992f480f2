package fieldpath

import (
	"reflect"
	"unsafe"
)

// program is a path compiled for one Go type: the steps from a pointer to an object
// to a pointer to the value, and how to read the value.
//
// Why offsets and not reflect.Value: a label of a pod is read in 24 ns without an
// allocation; looking the names up by reflect each time takes 2,700 ns and two
// allocations (BenchmarkAccessor, BenchmarkPlainReflect).
type program struct {
	typ  reflect.Type
	ops  []op
	read leaf
	// omit says that an empty value is not in the JSON.
	omit bool
	// last is the type of the value.
	last reflect.Type
	// object, if set, turns the object into decoded JSON, which has no compiled
	// steps.
	object func(object any) any
	// err says why there is no program.
	err error
}

type op struct {
	code opcode
	// offset is the distance to move, size the size of an element.
	offset, size uintptr
	index        int
	name         string
	typ          reflect.Type
	key          reflect.Value
	rest         []step
}

type opcode uint8

const (
	opMove       opcode = iota // to a member of the struct
	opFollow                   // the pointer
	opUnlessZero               // JSON leaves the struct out if it is zero
	opElement                  // of a slice
	opEach                     // element of a slice
	opEntry                    // of a map
	opEntries                  // of a map, all
	opDynamic                  // the type in an interface is known only at run time
	opText                     // the entry of a map of strings, which is the value
	opTexts                    // the entries of a map of strings
)

// sliceHeader is Go's layout of a slice.
type sliceHeader struct {
	data unsafe.Pointer
	len  int
	cap  int
}

// first runs the program from op i on the object at p and returns the first value,
// which is the only one without opEach. A path that leads nowhere returns Missing.
func (g *program) first(i int, p unsafe.Pointer) (v Value) {
	for ; i < len(g.ops); i++ {
		switch o := &g.ops[i]; o.code {
		case opMove:
			p = unsafe.Add(p, o.offset)
		case opFollow:
			if p = *(*unsafe.Pointer)(p); p == nil {
				return Value{}
			}
		case opUnlessZero:
			if o.zero(p) {
				return Value{}
			}
		case opElement:
			s := (*sliceHeader)(p)
			if o.index >= s.len {
				return Value{}
			}
			p = unsafe.Add(s.data, uintptr(o.index)*o.size)
		case opText:
			if text, ok := (*(*map[string]string)(p))[o.name]; ok {
				return StringValue(text)
			}
			return Value{}
		case opEntry:
			if p = o.entry(p); p == nil {
				return Value{}
			}
		case opEach, opEntries, opTexts, opDynamic:
			g.each(i, p, func(found Value) bool {
				v = found
				return false
			})
			return v
		}
	}
	return g.value(p)
}

// each yields every value, from op i on the object at p, until yield returns false.
func (g *program) each(i int, p unsafe.Pointer, yield func(Value) bool) bool {
	for ; i < len(g.ops); i++ {
		switch o := &g.ops[i]; o.code {
		case opMove:
			p = unsafe.Add(p, o.offset)
		case opFollow:
			if p = *(*unsafe.Pointer)(p); p == nil {
				return true
			}
		case opUnlessZero:
			if o.zero(p) {
				return true
			}
		case opElement:
			s := (*sliceHeader)(p)
			if o.index >= s.len {
				return true
			}
			p = unsafe.Add(s.data, uintptr(o.index)*o.size)
		case opEach:
			s := (*sliceHeader)(p)
			for k := range s.len {
				if !g.each(i+1, unsafe.Add(s.data, uintptr(k)*o.size), yield) {
					return false
				}
			}
			return true
		case opText:
			text, ok := (*(*map[string]string)(p))[o.name]
			return !ok || yield(StringValue(text))
		case opTexts:
			return eachText(*(*map[string]string)(p), yield)
		case opEntry:
			if p = o.entry(p); p == nil {
				return true
			}
		case opEntries:
			return g.entries(i, p, yield)
		case opDynamic:
			return eachDynamic(reflect.NewAt(o.typ, p).Elem().Interface(), o.rest, yield)
		}
	}
	if v := g.value(p); v.kind != Missing {
		return yield(v)
	}
	return true
}

// zero says whether a struct is zero, by its IsZero method if it has one.
func (o *op) zero(p unsafe.Pointer) bool {
	v := reflect.NewAt(o.typ, p)
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.Elem().IsZero()
}

// entry returns a map's entry. It is a copy, because entries of a map have no
// address.
func (o *op) entry(p unsafe.Pointer) unsafe.Pointer {
	found := reflect.NewAt(o.typ, p).Elem().MapIndex(o.key)
	if !found.IsValid() {
		return nil
	}
	return addressable(found)
}

func addressable(v reflect.Value) unsafe.Pointer {
	copied := reflect.New(v.Type())
	copied.Elem().Set(v)
	return copied.UnsafePointer()
}

// entries continues with each entry of a map, in the order of the keys.
func (g *program) entries(i int, p unsafe.Pointer, yield func(Value) bool) bool {
	m := reflect.NewAt(g.ops[i].typ, p).Elem()
	for _, key := range sortedKeys(m) {
		if !g.each(i+1, addressable(m.MapIndex(key)), yield) {
			return false
		}
	}
	return true
}
