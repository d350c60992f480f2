package share

import (
	"math"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// entry is an entry of a tree's map.
type entry struct {
	key   string
	value any
}

// A tree is what JSON is decoded to without a type: maps, lists, strings,
// numbers, booleans and nil. Its parts are maps, lists and strings, each as the
// interface holds it, so that the header of a list or string is shared too.
//
// Any other value in a tree is left alone, and nothing above it is shared.
var (
	mapPart  = &step{kind: jsonStep, reference: &reference{seed: salted(2 << 32), ref: shape.RefTo(shape.UntypedMapType)}}
	listPart = &step{kind: jsonStep, reference: &reference{seed: salted(3 << 32), ref: shape.RefTo(shape.UntypedListType)}}
	textPart = &step{kind: jsonStep, reference: &reference{seed: salted(4 << 32)}}
)

// value is a part of a tree as the interface it came in.
func (s *step) value(x shape.Memory) any {
	var v any
	switch s {
	case mapPart:
		v = map[string]any(nil)
	case listPart:
		v = noList
	case textPart:
		v = noText
	}
	(*shape.Interface)(unsafe.Pointer(&v)).Data = x.Ptr
	return v
}

var (
	noList any = []any(nil)
	noText any = ""
)

const (
	nilSalt    = 0x8CB92BA72F3D8DD7
	numberSalt = 0x9FB21C651E98DF25
	floatSalt  = 0xC2B2AE3D27D4EB4F
	listSalt   = 0x165667B19E3779F9
)

// hashTree hashes a value and records the hashes of the maps and lists in it.
func (w *worker) hashTree(v any, depth int) uint64 {
	switch v := v.(type) {
	case nil:
		return nilSalt
	case string:
		return hashString(v)
	case bool:
		if v {
			return boolSalt
		}
		return boolSalt + 2
	case int64:
		return mix(uint64(v), 0, numberSalt)
	case float64:
		return mix(math.Float64bits(v), 0, floatSalt)
	case map[string]any:
		return w.hashMap(v, depth)
	case []any:
		return w.hashList(v, depth)
	default:
		w.opaque = true
		return 0
	}
}

func (w *worker) hashMap(m map[string]any, depth int) uint64 {
	if m == nil {
		return mapPart.seed
	}
	at, outer := w.enter()
	if depth >= maxDepth || w.left < 0 {
		w.nodes[at].cut = true
		return w.leave(at, outer, 0)
	}
	first := len(w.entries)
	for k, v := range m {
		w.entries = append(w.entries, entry{k, v})
	}
	last := len(w.entries)
	w.nodes[at].entry, w.nodes[at].entries = int32(first), int32(last-first)
	sum := uint64(0)
	for i := first; i < last; i++ {
		e := &w.entries[i]
		key := hashString(e.key)
		sum += mix(key, w.hashTree(e.value, depth+1), emptySalt)
	}
	return w.leave(at, outer, mix(mapPart.seed, sum, boolSalt))
}

func (w *worker) hashList(list []any, depth int) uint64 {
	if list == nil {
		return listPart.seed
	}
	at, outer := w.enter()
	if depth >= maxDepth || w.left < 0 {
		w.nodes[at].cut = true
		return w.leave(at, outer, 0)
	}
	h := mix(listPart.seed, uint64(len(list)), listSalt)
	for _, v := range list {
		h = mix(h, w.hashTree(v, depth+1), listSalt)
	}
	return w.leave(at, outer, h)
}

// equalTree compares two values to the bit.
func (c *comparer) equalTree(a, b any, depth int) bool {
	if c.compares--; depth > maxDepth || c.compares < 0 {
		return false
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for k, v := range a {
			other, ok := b[k]
			if !ok || !c.equalTree(v, other, depth+1) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for i := range a {
			if !c.equalTree(a[i], b[i], depth+1) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
