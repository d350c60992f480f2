package wire

import (
	"bytes"
	"unsafe"
)

// repeats are the parts that were last made for the object at hand. Its containers often
// mount the same volumes, under names that no other object has.
type repeats struct {
	parts [8]struct {
		salt       uint64 // of the field
		start, end int
		ptr        unsafe.Pointer
		// admitting is that of the reader when it made the part.
		admitting bool
	}
	next int
}

// worthRepeating is how many bytes a part must be made of to be looked for.
const worthRepeating = 32

// find returns the part that was made of the same bytes, for this field or one of the
// same type. What is to go into the pool is made of such parts only as could go there.
func (r *repeats) find(f *protoField, data []byte, start, end int, admitting bool) unsafe.Pointer {
	if end-start < worthRepeating {
		return nil
	}
	for i := range r.parts {
		p := &r.parts[i]
		if p.salt == f.salt && p.ptr != nil && (p.admitting || !admitting) && p.end-p.start == end-start && bytes.Equal(data[p.start:p.end], data[start:end]) {
			return p.ptr
		}
	}
	return nil
}

func (r *repeats) add(f *protoField, start, end int, ptr unsafe.Pointer, admitting bool) {
	if end-start < worthRepeating || ptr == nil {
		return
	}
	p := &r.parts[r.next%len(r.parts)]
	p.salt, p.start, p.end, p.ptr, p.admitting = f.salt, start, end, ptr, admitting
	r.next++
}

// forget is for the next object.
func (r *repeats) forget() {
	if r.next > 0 {
		*r = repeats{}
	}
}
