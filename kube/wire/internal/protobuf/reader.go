package protobuf

import (
	"encoding/binary"
	"math"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/recent"
)

// maxDepth is how deep messages may be nested. The stock decoder has no limit but
// the stack, whose overflow ends the process; only nested JSON schemas could come
// near it.
const maxDepth = 1000

// reader decodes one object at a time, and learns from each what repeats.
//
// It is a fast path for what well-formed writers send, straight into the memory of
// the Go structs. Where the bytes are anything else (a field of another wire type,
// a field given twice, a list in two runs) it stops, and the stock decoder takes
// the whole object. So each field is set once, and in any order.
//
// Why the text of an object goes into one allocation at the end, and not each
// string into its own: a pod has some forty strings that no other pod has, and the
// cost is by the number of allocations.
type reader struct {
	pool       *pool.Pool // nil shares nothing
	decoder    *Decoder
	stats      fieldStats
	known      recent.Texts
	quantities recent.Table[recentQuantity]
	texts      deferred
	epoch      uint64 // the pool's epoch when the last object began
	// lazies counts lazy quantities that are not values of maps: see
	// [shape.IsLazy].
	lazies int

	// The object that is being decoded:
	data  []byte
	owner pool.Owner
	depth int
	lastState
	repeats repeats
	// admitting says that what is being read goes into the pool.
	admitting bool
	// at is where the fast path stopped, deep whether the depth was the reason.
	at   int
	deep bool
}

// fail records where the fast path ends. It returns -1: nothing follows.
func (r *reader) fail(at int) int {
	r.at = at
	return -1
}

// stop is fail for functions that return a bool.
func (r *reader) stop(at int) bool {
	r.at = at
	return false
}

// message decodes what lies between i and end into the struct at base, and says
// whether it could.
func (r *reader) message(n *node, i, end int, base unsafe.Pointer) bool {
	if n.state.Load() != proven && !r.planned(n, i, end) {
		return r.ownMessage(n, i, end, base)
	}
	if r.depth++; r.depth > maxDepth {
		r.deep = true
		return r.stop(i)
	}
	b := r.data[:end]
	fields := n.fields
	seen := uint64(0) // by number; numbers beyond 63 wrap around, and may look like a field given twice
	for i < len(b) {
		start := i
		number, wireType := int(b[i]>>3), b[i]&7
		if i++; b[start] >= 0x80 {
			if number, wireType, i = longTag(b, start); i < 0 {
				return r.stop(start)
			}
		}
		if number >= len(fields) || fields[number].kind == kindUnknown {
			if i = skip(b, i, wireType); i < 0 || number == 0 {
				return r.stop(start)
			}
			continue
		}
		f := &fields[number]
		bit := uint64(1) << (number & 63)
		if wireType != f.wireType || i-start != int(f.tagSize) || seen&bit != 0 {
			return r.stop(start)
		}
		seen |= bit
		dst := unsafe.Add(base, f.offset)
		if f.kind >= kindRuns {
			if i = r.run(f, b, start, dst); i < 0 {
				return false
			}
			continue
		}
		if f.wireType != wireBytes {
			if i = r.scalar(f, b, i, dst); i < 0 {
				return r.stop(start)
			}
			continue
		}
		from := i + 1
		if i < len(b) && b[i] < 0x80 && int(b[i]) <= len(b)-from {
			i = from + int(b[i])
		} else if from, i = span(b, i); i < 0 {
			return r.stop(start)
		}
		ok := true
		switch f.kind {
		case kindString:
			r.text(f, from, i, (*string)(dst))
		case kindMessage:
			ok = r.inlineMessage(f, from, i, dst)
		case kindPtrMessage:
			ok = r.pointer(f, from, i, (*unsafe.Pointer)(dst))
		case kindTime:
			ok = r.time(from, i, (*metav1.Time)(dst)) || r.stop(start)
		case kindPtrTime:
			ok = r.timePointer(from, i, (**metav1.Time)(dst)) || r.stop(start)
		case kindPtrString:
			text := new(string)
			*(**string)(dst) = text
			r.text(f, from, i, text)
		case kindBytes:
			r.texts.blob(r.data, from, i, (*[]byte)(dst))
		}
		if !ok {
			return false
		}
	}
	r.depth--
	return true
}

// scalar decodes a number at i, and returns where the next field begins, or -1.
func (r *reader) scalar(f *field, b []byte, i int, dst unsafe.Pointer) int {
	switch f.wireType {
	case wireVarint:
		v, next := varint(b, i)
		if next >= 0 {
			r.number(f, v, dst)
		}
		return next
	case wireFixed64:
		if len(b)-i < 8 {
			return -1
		}
		v := binary.LittleEndian.Uint64(b[i:])
		if f.kind == kindFloat64 {
			*(*float64)(dst) = math.Float64frombits(v)
		} else {
			r.texts.number(number8, v, dst)
		}
		return i + 8
	}
	if len(b)-i < 4 {
		return -1
	}
	v := binary.LittleEndian.Uint32(b[i:])
	if f.kind == kindFloat32 {
		*(*float32)(dst) = math.Float32frombits(v)
	} else {
		r.texts.number(number4, uint64(v), dst)
	}
	return i + 4
}

// number stores a number or a pointer to one.
func (r *reader) number(f *field, v uint64, dst unsafe.Pointer) {
	switch f.kind {
	case kindInt32:
		*(*int32)(dst) = int32(v)
	case kindInt64:
		*(*int64)(dst) = int64(v)
	case kindBool:
		*(*bool)(dst) = v != 0
	case kindPtrInt32:
		r.texts.number(number4, v, dst)
	case kindPtrInt64:
		r.texts.number(number8, v, dst)
	case kindPtrBool:
		r.texts.number(number1, min(v, 1), dst)
	}
}
