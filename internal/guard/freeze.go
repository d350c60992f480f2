package guard

import (
	"fmt"
	"reflect"
	"sync"
	"time"
	"unsafe"
)

// maxDepth bounds how deep values are copied. What is deeper stays on Go's heap.
const maxDepth = 64

var (
	locationType = reflect.TypeFor[*time.Location]()

	mu sync.Mutex
	// kept are the values on Go's heap that frozen objects refer to. The collector does
	// not see those references, so they must never be freed.
	kept []any
	// prepare has, by type, what is done to a value before it is copied.
	prepare = map[reflect.Type]func(value any){}
)

// Prepare has a function called with a pointer to each struct of a type before it becomes
// read-only, for types that write to themselves when they are read.
func Prepare(t reflect.Type, do func(pointer any)) {
	mu.Lock()
	defer mu.Unlock()
	prepare[t] = do
}

// builder copies one object: first it counts the bytes, then it copies.
//
// Why two passes: the object must be in one piece of pages of its own, and an object that
// grows while it is copied would have to be moved, with all pointers into it.
type builder struct {
	memory []byte // nil while bytes are counted
	used   int
	parts  []part
	maps   []watchedMap
	kept   []any
	clones cloner
}

// part is a piece of an object's memory.
type part struct {
	at, size int
	field    string
	t        reflect.Type
	// stride is the size of an element, if the part is a list.
	stride int
}

// watchedMap is a map that a frozen object refers to, a plain value behind an interface, or
// an object that cannot be frozen.
type watchedMap struct {
	field string // empty for an object
	value reflect.Value
	hash  uint64
}

// freeze copies what pointer points to, a struct, and returns a pointer of the same type.
func (b *builder) freeze(pointer reflect.Value) reflect.Value {
	t := pointer.Type().Elem()
	to := b.place(int(t.Size()), t.Align(), part{t: t})
	b.value("", t, pointer.UnsafePointer(), to, 0)
	if to == nil {
		return reflect.Value{}
	}
	return reflect.NewAt(t, to)
}

// place reserves memory for a part; nil while bytes are counted.
func (b *builder) place(size, align int, p part) unsafe.Pointer {
	size = max(size, 1) // also an empty struct has an address
	b.used = (b.used + align - 1) / align * align
	at := b.used
	b.used += size
	if b.memory == nil {
		return nil
	}
	p.at, p.size = at, size
	b.parts = append(b.parts, p)
	return unsafe.Pointer(&b.memory[at : at+size][0])
}

// value copies a value of type t. to is nil while bytes are counted.
func (b *builder) value(field string, t reflect.Type, from, to unsafe.Pointer, depth int) {
	if to != nil {
		copy(unsafe.Slice((*byte)(to), t.Size()), unsafe.Slice((*byte)(from), t.Size()))
	}
	b.references(field, t, from, to, depth)
}

// prepare calls what is registered for a type with the copy of a value, and keeps alive
// what that wrote.
func (b *builder) prepare(t reflect.Type, to unsafe.Pointer) {
	if do := prepare[t]; do != nil && to != nil {
		do(reflect.NewAt(t, to).Interface())
		b.keep(t, to)
	}
}

// references copies what a value refers to, and makes the copy refer to that.
func (b *builder) references(field string, t reflect.Type, from, to unsafe.Pointer, depth int) {
	if depth > maxDepth {
		b.keep(t, from)
		return
	}
	switch t.Kind() {
	case reflect.String:
		text := *(*string)(from)
		if len(text) == 0 {
			if to != nil {
				*(*string)(to) = "" // not a pointer into text that may be freed
			}
			return
		}
		if at := b.place(len(text), 1, part{field: field, t: t}); at != nil {
			copy(unsafe.Slice((*byte)(at), len(text)), text)
			*(*string)(to) = unsafe.String((*byte)(at), len(text))
		}
	case reflect.Pointer:
		target := *(*unsafe.Pointer)(from)
		if target == nil {
			return
		}
		if t == locationType {
			b.keep(t, from)
			return
		}
		e := t.Elem()
		at := b.place(int(e.Size()), e.Align(), part{field: field, t: e})
		b.value(field, e, target, at, depth+1)
		if to != nil {
			*(*unsafe.Pointer)(to) = at
		}
	case reflect.Slice:
		b.slice(field, t, from, to, depth)
	case reflect.Array:
		for i := range t.Len() {
			offset := uintptr(i) * t.Elem().Size()
			b.references(field, t.Elem(), unsafe.Add(from, offset), after(to, offset), depth+1)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if isPrivateReference(f) {
				b.keep(f.Type, unsafe.Add(from, f.Offset))
				continue
			}
			b.references(fieldUnder(field, f), f.Type, unsafe.Add(from, f.Offset), after(to, f.Offset), depth+1)
		}
		b.prepare(t, to)
	case reflect.Map:
		b.watch(field, t, from, to, depth)
	case reflect.Interface:
		b.behind(field, t, from, to, depth)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		b.keep(t, from)
	}
}

// watch copies a value that cannot be in read-only memory, and has it compared.
func (b *builder) watch(field string, t reflect.Type, from, to unsafe.Pointer, depth int) {
	v := reflect.NewAt(t, from).Elem()
	if to == nil || v.IsNil() {
		return
	}
	own := b.clones.clone(v, depth)
	reflect.NewAt(t, to).Elem().Set(own)
	b.kept = append(b.kept, own.Interface())
	b.maps = append(b.maps, watchedMap{field: field, value: own, hash: hashOf(own)})
}

// behind copies what an interface holds: a struct behind a pointer, such as another object,
// becomes read-only too, and maps, lists and other plain values are compared.
func (b *builder) behind(field string, t reflect.Type, from, to unsafe.Pointer, depth int) {
	held := reflect.NewAt(t, from).Elem().Elem()
	switch {
	case !held.IsValid():
	case isPlain(held.Type()):
		b.watch(field, t, from, to, depth)
	case held.Kind() == reflect.Pointer && !held.IsNil() && held.Type().Elem().Kind() == reflect.Struct && !reachesLazy(held.Type()):
		e := held.Type().Elem()
		at := b.place(int(e.Size()), e.Align(), part{field: field, t: e})
		b.value(field, e, held.UnsafePointer(), at, depth+1)
		if to != nil {
			reflect.NewAt(t, to).Elem().Set(reflect.NewAt(e, at))
		}
	default:
		b.keep(t, from)
	}
}

func (b *builder) slice(field string, t reflect.Type, from, to unsafe.Pointer, depth int) {
	list, e := reflect.NewAt(t, from).Elem(), t.Elem()
	n := list.Len()
	if list.IsNil() {
		return
	}
	if n == 0 || e.Size() == 0 {
		if to != nil { // neither a pointer to what may be freed, nor room to append to
			*(*header)(to) = header{unsafe.Pointer(&nothing), n, n}
		}
		return
	}
	at := b.place(n*int(e.Size()), e.Align(), part{field: field, t: e, stride: int(e.Size())})
	source := list.UnsafePointer()
	for i := range n {
		offset := uintptr(i) * e.Size()
		b.value(fmt.Sprintf("%s[%d]", field, i), e, unsafe.Add(source, offset), after(at, offset), depth+1)
	}
	if to != nil {
		*(*header)(to) = header{at, n, n}
	}
}

// nothing is what lists without content point to.
var nothing [0]byte

// header is how a slice is laid out.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

func after(p unsafe.Pointer, offset uintptr) unsafe.Pointer {
	if p == nil {
		return nil
	}
	return unsafe.Add(p, offset)
}

// keep keeps alive what a value on Go's heap refers to.
func (b *builder) keep(t reflect.Type, from unsafe.Pointer) {
	if b.memory != nil {
		held := reflect.New(t)
		held.Elem().Set(reflect.NewAt(t, from).Elem())
		b.kept = append(b.kept, held.Interface())
	}
}
