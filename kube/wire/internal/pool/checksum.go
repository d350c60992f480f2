package pool

import (
	"hash/maphash"
	"math/bits"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// checksum is a hash of the memory of a part. It finds a later write.
//
// Memory is hashed byte by byte, references included, and then the memory that the
// references lead to. So replacing a text by an equal one counts as a write, which
// it is. Why not by value, as package share hashes: visiting every field takes ten
// times as long, and every part is hashed when it is made.
type checksum uint64

// checksumSeed is secret, so that nobody can choose a write that does not change
// the checksum.
var checksumSeed = maphash.MakeSeed()

// checksumOf hashes what a reference leads to, and returns how many bytes it
// hashed.
func checksumOf(r *shape.Ref, x shape.Memory) (d checksum, size int) {
	h := checksummer{left: shape.MaxRefs}
	return checksum(h.part(r, x, 0)), h.bytes
}

// checksummer makes one checksum.
type checksummer struct {
	left  int
	bytes int
}

func (h *checksummer) part(r *shape.Ref, x shape.Memory, depth int) uint64 {
	if h.left--; h.left < 0 || depth > shape.MaxDepth || x.Ptr == nil {
		return 0
	}
	switch r.Kind {
	case shape.Pointer:
		return h.block(r.Elem, x.Ptr, 1, depth)
	case shape.Slice:
		return h.block(r.Elem, x.Ptr, x.N, depth)
	case shape.Map:
		return h.table(r, x.Ptr, depth)
	case shape.TreeMap:
		return h.treeMap(*(*map[string]any)(unsafe.Pointer(&x.Ptr)), depth)
	case shape.TreeList:
		return h.treeList(*(*[]any)(x.Ptr), depth)
	default:
		return 0
	}
}

// block hashes n values of a shape.
func (h *checksummer) block(s *shape.Shape, at unsafe.Pointer, n, depth int) uint64 {
	sum := h.memory(at, s.Size*uintptr(n))
	if len(s.Refs) == 0 {
		return sum
	}
	for i := range n {
		base := unsafe.Add(at, uintptr(i)*s.Size)
		for j := range s.Refs {
			r := &s.Refs[j]
			if field := unsafe.Add(base, r.Offset); !shape.IsNil(field) {
				sum = combine(sum, h.reference(r, field, depth+1))
			}
		}
	}
	return sum
}

// reference hashes what the reference in a field leads to.
func (h *checksummer) reference(r *shape.Ref, field unsafe.Pointer, depth int) uint64 {
	switch r.Kind {
	case shape.Tree:
		return h.tree(*(*any)(field), depth)
	case shape.Slice:
		list := (*shape.SliceHeader)(field)
		return h.part(r, shape.Memory{Ptr: list.Ptr, N: list.Len}, depth)
	default:
		return h.part(r, shape.Memory{Ptr: *(*unsafe.Pointer)(field), N: 1}, depth)
	}
}

func (h *checksummer) memory(at unsafe.Pointer, size uintptr) uint64 {
	h.bytes += int(size)
	return maphash.Bytes(checksumSeed, unsafe.Slice((*byte)(at), size))
}

// combine adds a hash to others, in their order.
func combine(sum, x uint64) uint64 {
	hi, lo := bits.Mul64(sum^0x9E3779B97F4A7C15, x|1)
	return hi ^ lo + x
}

// table hashes a map. Entries come in another order each time, so their hashes are
// added up.
func (h *checksummer) table(r *shape.Ref, m unsafe.Pointer, depth int) (sum uint64) {
	if r.Type.Key().Kind() == reflect.String && r.Type.Elem().Kind() == reflect.String {
		for k, v := range *(*map[string]string)(unsafe.Pointer(&m)) {
			entry := [2]string{k, v}
			sum += h.memory(unsafe.Pointer(&entry), unsafe.Sizeof(entry))
		}
		return sum
	}
	return h.anyTable(r, m, depth)
}

// anyTable is table for maps of any type.
func (h *checksummer) anyTable(r *shape.Ref, m unsafe.Pointer, depth int) (sum uint64) {
	entries := entryPool(r.Type)
	e := entries.Get().(*mapEntry)
	defer func() {
		e.clear()
		entries.Put(e)
	}()
	e.table = m
	for i := reflect.NewAt(r.Type, unsafe.Pointer(&e.table)).Elem().MapRange(); i.Next(); {
		if h.left--; h.left < 0 {
			return sum
		}
		e.key.Elem().SetIterKey(i)
		e.value.Elem().SetIterValue(i)
		sum += combine(h.memory(e.key.UnsafePointer(), r.Type.Key().Size()), h.block(r.Elem, e.value.UnsafePointer(), 1, depth+1))
	}
	return sum
}

// mapEntry is memory to which the entries of a map are copied, to hash them.
//
// Why it is reused: containers have maps of quantities, and with memory made for each map, hashing
// made 9 % of the allocations for the first state of one of four shards (bench/shards). Why not
// a loop over the map by its type: its copies need not have the padding of the original.
type mapEntry struct {
	table      unsafe.Pointer
	key, value reflect.Value
}

func (e *mapEntry) clear() {
	e.table = nil
	e.key.Elem().SetZero()
	e.value.Elem().SetZero()
}

// entryPools has a pool of entries for each type of maps.
var entryPools sync.Map

func entryPool(t reflect.Type) *sync.Pool {
	if p, ok := entryPools.Load(t); ok {
		return p.(*sync.Pool)
	}
	p, _ := entryPools.LoadOrStore(t, &sync.Pool{New: func() any {
		return &mapEntry{key: reflect.New(t.Key()), value: reflect.New(t.Elem())}
	}})
	return p.(*sync.Pool)
}

// tree hashes what an interface of a tree holds. Everything but maps and lists is
// immutable.
func (h *checksummer) tree(v any, depth int) uint64 {
	if h.left--; h.left < 0 || depth > shape.MaxDepth {
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

func (h *checksummer) treeMap(m map[string]any, depth int) (sum uint64) {
	for k, v := range m {
		entry := struct {
			key   string
			value any
		}{k, v}
		sum += combine(h.memory(unsafe.Pointer(&entry), unsafe.Sizeof(entry)), h.tree(v, depth+1))
	}
	return sum
}

func (h *checksummer) treeList(list []any, depth int) uint64 {
	if len(list) == 0 {
		return 0
	}
	sum := h.memory(unsafe.Pointer(unsafe.SliceData(list)), unsafe.Sizeof(list[0])*uintptr(len(list)))
	for _, v := range list {
		sum = combine(sum, h.tree(v, depth+1))
	}
	return sum
}
