package protobuf

import (
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// run decodes a run of a repeated field or of a map's entries, or finds a part that
// was made of the same bytes before. It returns where the next field begins, or -1.
//
// A slice has no spare capacity, so that an append copies it.
func (r *reader) run(f *field, b []byte, i int, dst unsafe.Pointer) int {
	end, n := runEnd(b, i, f.tag, int(f.tagSize), f.wireType)
	if end < 0 {
		return r.fail(i)
	}
	if f.private && f.kind >= kindTextMap {
		return r.privateMap(f, i, end, n, dst)
	}
	found := r.shared(f, i, end, n, dst)
	if found == nil {
		return -1
	}
	if f.kind >= kindTextMap {
		*(*unsafe.Pointer)(dst) = found
	} else {
		*(*shape.SliceHeader)(dst) = shape.SliceHeader{Ptr: found, Len: n, Cap: n}
	}
	return end
}

// pointer decodes a message of its own, or finds one that was made of the same
// bytes.
func (r *reader) pointer(f *field, i, end int, dst *unsafe.Pointer) bool {
	*dst = r.shared(f, i, end, 1, unsafe.Pointer(dst))
	return *dst != nil
}

// shared finds a part that was made of the same bytes, in the object's last state, in
// the object itself or in the pool, or decodes it. It returns nil if the bytes are
// irregular.
//
// The object comes before the pool: a part that repeats only within objects, such as the
// mounts of their containers, then counts as one that does not repeat, and is not put
// into the pool.
func (r *reader) shared(f *field, i, end, n int, dst unsafe.Pointer) unsafe.Pointer {
	if f.private {
		return r.memory(f, i, end, n, dst)
	}
	noted, lazies := r.now.n, r.lazies
	if kept, ok := r.takeOver(f, i, end, n, dst); ok {
		return kept.Ptr
	}
	if h := r.inObject(f, end-i); h != nil && end-i >= worthRepeating && h.Try() {
		made := r.repeats.find(f, r.data, i, end, r.texts.frame, r.admitting)
		if h.Record(made != nil); made != nil {
			return made
		}
	}
	found, admission := r.lookUp(f, i, end, n)
	if found.Ptr != nil {
		return found.Ptr
	}
	frame := r.texts.frame
	var made unsafe.Pointer
	if admission.admit || r.mayHaveLast && end-i >= minOwnText {
		made, frame = r.part(f, i, end, n, admission, dst), complete
	} else {
		made = r.memory(f, i, end, n, dst)
	}
	if r.lazies != lazies {
		r.now.remove(noted)
	} else {
		r.repeats.add(f, i, end, made, frame, r.admitting || admission.admit)
	}
	return made
}

// part decodes what could not be found, with text of its own, and puts it into the pool
// if it is admitted. It returns nil if it cannot decode it.
func (r *reader) part(f *field, i, end, n int, admission admission, dst unsafe.Pointer) unsafe.Pointer {
	frame, lazies, admitting := r.texts.open(), r.lazies, r.admitting
	r.admitting = r.admitting || admission.admit
	made := r.memory(f, i, end, n, dst)
	r.admitting = admitting
	if made == nil {
		return nil
	}
	size := int(f.elemSize)*n + r.closeFrame(frame)
	if !admission.admit || r.lazies != lazies || size < pool.MinSize {
		return made
	}
	return r.offer(f, admission, i, end, pool.NewPart(f.ref(), shape.Memory{Ptr: made, N: n}, size, r.readAt)).Ptr
}

// closeFrame sets the deferred values of a part, and returns their size in bytes.
func (r *reader) closeFrame(frame deferredFrame) int {
	closing := r.texts.frame
	size := r.texts.close(r.data, frame)
	r.repeats.closed(closing)
	return size
}

// offer puts a part that is admitted into the pool, and returns the one to use.
func (r *reader) offer(f *field, admission admission, i, end int, made pool.Part) shape.Memory {
	k := pool.Key{First: admission.first, Second: r.pool.SecondHalf(f.salt, r.data[i:end])}
	if winner := r.pool.Put(k, made, r.owner); winner.N == made.N {
		return winner.Memory
	}
	return made.Memory
}

// memory decodes a slice, a map, or what a pointer points to.
func (r *reader) memory(f *field, i, end, n int, dst unsafe.Pointer) unsafe.Pointer {
	made := unsafe.Pointer(nil)
	ok := false
	switch f.kind {
	case kindPtrMessage:
		made = f.newArray(1)
		outer := r.enter(f, dst, made, 1)
		ok = r.message(f.child(), i, end, made)
		r.window = outer
	case kindTextMap, kindBytesMap:
		made, ok = r.textMap(f, i, end, n)
	case kindQuantityMap:
		made, ok = r.quantityMap(f, i, end, n)
	case kindMessageMap:
		made, ok = r.messageMap(f, i, end, n)
	default:
		made = f.newArray(n)
		outer := r.enter(f, dst, made, n)
		ok = r.elements(f, r.data[:end], i, made, n)
		r.window = outer
	}
	if !ok {
		return nil
	}
	return made
}

// elements decodes the entries of a run.
func (r *reader) elements(f *field, b []byte, i int, array unsafe.Pointer, n int) bool {
	var child *node
	if f.kind == kindMessages {
		child = f.child()
	}
	for k := range n {
		dst := unsafe.Add(array, uintptr(k)*uintptr(f.elemSize))
		i += int(f.tagSize)
		if f.wireType == wireVarint {
			v, next := varint(b, i)
			switch i = next; f.kind {
			case kindInt32s:
				*(*int32)(dst) = int32(v)
			case kindInt64s:
				*(*int64)(dst) = int64(v)
			case kindBools:
				*(*bool)(dst) = v != 0
			}
			continue
		}
		start, end := span(b, i)
		switch f.kind {
		case kindMessages:
			if !r.message(child, start, end, dst) {
				return false
			}
		case kindStrings:
			r.texts.text(r.data, start, end, (*string)(dst), r.inObject(f, end-start))
		case kindBytesList:
			r.texts.blob(r.data, start, end, (*[]byte)(dst))
		}
		i = end
	}
	return true
}

// admission says whether a part that is not in the pool may be put there; first is the
// first half of its key.
type admission struct {
	first uint64
	admit bool
}

// lookUp looks for a part made of the same bytes. It must have n elements: a cheap
// check on the hash. Fields whose parts hardly ever repeat are not looked up.
func (r *reader) lookUp(f *field, i, end, n int) (shape.Memory, admission) {
	if r.pool == nil || f.elemSize == 0 {
		return shape.Memory{}, admission{}
	}
	place := r.stats.index(f, end-i)
	h := &r.stats.inPool[place]
	if !h.Try() {
		return shape.Memory{}, admission{}
	}
	raw := r.data[i:end]
	x, turn := r.stats.findLast(place, raw, r.readAt)
	known := x.Ptr != nil && !r.admitting
	if !known {
		a := pool.FirstHalf(r.hash(i, end), f.salt)
		var b uint64
		var found, before bool
		x, b, found, before = r.pool.GetByFirst(a, pool.Request{Owner: r.owner, Now: r.readAt, Verify: r.admitting})
		if !found || x.N != n || b != r.pool.SecondHalf(f.salt, raw) {
			h.Record(false)
			return shape.Memory{}, admission{first: a, admit: before || !h.Rare}
		}
	}
	if r.tooDeepHere(f, i, end) {
		return shape.Memory{}, admission{} // decoding reports the depth
	}
	h.Record(true)
	if !known {
		r.stats.remember(place, turn, raw, x)
	}
	return x.Memory, admission{}
}
