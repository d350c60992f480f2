package protobuf

import (
	"bytes"
	"math"
	"unsafe"
)

// repeats are the parts that were last made for the current object. Its containers often
// mount the same volumes, under names that no other object has.
type repeats struct {
	parts [8]struct {
		salt       uint64 // of the field
		start, end int
		ptr        unsafe.Pointer
		// frame is the frame of the part's text, or complete if the text is set.
		frame int
		// admitting is the reader's flag when it made the part.
		admitting bool
	}
	next int
}

// complete is the frame of a part whose text is all set.
const complete = math.MaxInt

// worthRepeating is how many bytes a part must be made of to be looked for.
const worthRepeating = 32

// find returns the part that was made of the same bytes, for this field or one of
// the same type. The part is complete once the frame that is open now is closed. A
// part that goes into the pool contains only parts that could go there.
func (r *repeats) find(f *field, data []byte, start, end, frame int, admitting bool) unsafe.Pointer {
	for i := range r.parts {
		p := &r.parts[i]
		if p.salt == f.salt && p.ptr != nil && p.frame >= frame && (p.admitting || !admitting) && p.end-p.start == end-start && bytes.Equal(data[p.start:p.end], data[start:end]) {
			return p.ptr
		}
	}
	return nil
}

func (r *repeats) add(f *field, start, end int, ptr unsafe.Pointer, frame int, admitting bool) {
	if end-start < worthRepeating || ptr == nil {
		return
	}
	p := &r.parts[r.next%len(r.parts)]
	p.salt, p.start, p.end, p.ptr, p.frame, p.admitting = f.salt, start, end, ptr, frame, admitting
	r.next++
}

// closed records that a frame was closed: parts made since it was opened are
// complete.
func (r *repeats) closed(frame int) {
	if r.next == 0 {
		return
	}
	for i := range r.parts {
		if p := &r.parts[i]; p.frame >= frame {
			p.frame = complete
		}
	}
}

// forget prepares for the next object.
func (r *repeats) forget() {
	if r.next > 0 {
		*r = repeats{}
	}
}
