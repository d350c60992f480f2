package wire

import (
	"hash/maphash"
	"math/bits"
	"reflect"
	"unsafe"
)

// digest is a hash of the memory that a part consists of, by which a write to it is
// found later.
//
// Memory is hashed as it lies there, references included, and what these lead to after
// it. So a text that took the place of an equal one counts as a write, which it is.
// Why not by value, as a [Sharer] hashes: visiting every field takes ten times as long,
// and every part is hashed when it is made.
type digest uint64

// digestSeed is secret, so that nobody can choose a write that does not show.
var digestSeed = maphash.MakeSeed()

// digestOf hashes what a reference leads to, and says how many bytes that were.
func digestOf(r *ref, x part) (d digest, size int) {
	h := digester{left: digestRefs}
	return digest(h.part(r, x, 0)), h.bytes
}

// digester makes one digest.
type digester struct {
	left  int
	bytes int
}

func (h *digester) part(r *ref, x part, depth int) uint64 {
	if h.left--; h.left < 0 || depth > digestDepth || x.ptr == nil {
		return 0
	}
	switch r.kind {
	case refPointer:
		return h.block(r.elem, x.ptr, 1, depth)
	case refSlice:
		return h.block(r.elem, x.ptr, x.n, depth)
	case refMap:
		return h.table(r, x.ptr, depth)
	case refTreeMap:
		return h.treeMap(*(*map[string]any)(unsafe.Pointer(&x.ptr)), depth)
	case refTreeList:
		return h.treeList(*(*[]any)(x.ptr), depth)
	default:
		return 0
	}
}

// block hashes n values of a shape.
func (h *digester) block(s *shape, at unsafe.Pointer, n, depth int) uint64 {
	sum := h.memory(at, s.size*uintptr(n))
	if len(s.refs) == 0 {
		return sum
	}
	for i := range n {
		base := unsafe.Add(at, uintptr(i)*s.size)
		for j := range s.refs {
			r := &s.refs[j]
			if field := unsafe.Add(base, r.off); !isNil(field) {
				sum = joined(sum, h.reference(r, field, depth+1))
			}
		}
	}
	return sum
}

// reference hashes what the reference in a field leads to.
func (h *digester) reference(r *ref, field unsafe.Pointer, depth int) uint64 {
	switch r.kind {
	case refTree:
		return h.tree(*(*any)(field), depth)
	case refSlice:
		list := (*sliceHeader)(field)
		return h.part(r, part{list.ptr, list.len}, depth)
	default:
		return h.part(r, part{*(*unsafe.Pointer)(field), 1}, depth)
	}
}

func (h *digester) memory(at unsafe.Pointer, size uintptr) uint64 {
	h.bytes += int(size)
	return maphash.Bytes(digestSeed, unsafe.Slice((*byte)(at), size))
}

// joined adds a hash to others, in their order.
func joined(sum, x uint64) uint64 {
	hi, lo := bits.Mul64(sum^0x9E3779B97F4A7C15, x|1)
	return hi ^ lo + x
}

// table hashes a map: the entries of one come in another order each time, so that
// their hashes are added up.
func (h *digester) table(r *ref, m unsafe.Pointer, depth int) (sum uint64) {
	if r.typ.Key().Kind() == reflect.String && r.typ.Elem().Kind() == reflect.String {
		for k, v := range *(*map[string]string)(unsafe.Pointer(&m)) {
			entry := [2]string{k, v}
			sum += h.memory(unsafe.Pointer(&entry), unsafe.Sizeof(entry))
		}
		return sum
	}
	key, value := reflect.New(r.typ.Key()), reflect.New(r.typ.Elem())
	for i := reflect.NewAt(r.typ, unsafe.Pointer(&m)).Elem().MapRange(); i.Next(); {
		if h.left--; h.left < 0 {
			return sum
		}
		key.Elem().SetIterKey(i)
		value.Elem().SetIterValue(i)
		sum += joined(h.memory(key.UnsafePointer(), r.typ.Key().Size()), h.block(r.elem, value.UnsafePointer(), 1, depth+1))
	}
	return sum
}

// tree hashes what an interface of a tree holds. All but maps and lists is immutable.
func (h *digester) tree(v any, depth int) uint64 {
	if h.left--; h.left < 0 || depth > digestDepth {
		return 0
	}
	switch v := v.(type) {
	case map[string]any:
		return h.treeMap(v, depth)
	case []any:
		return h.treeList(v, depth)
	default:
		return 0
	}
}

func (h *digester) treeMap(m map[string]any, depth int) (sum uint64) {
	for k, v := range m {
		entry := struct {
			key   string
			value any
		}{k, v}
		sum += joined(h.memory(unsafe.Pointer(&entry), unsafe.Sizeof(entry)), h.tree(v, depth+1))
	}
	return sum
}

func (h *digester) treeList(list []any, depth int) uint64 {
	if len(list) == 0 {
		return 0
	}
	sum := h.memory(unsafe.Pointer(unsafe.SliceData(list)), unsafe.Sizeof(list[0])*uintptr(len(list)))
	for _, v := range list {
		sum = joined(sum, h.tree(v, depth+1))
	}
	return sum
}
