package json

import (
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// load returns what the slice, map or pointer at dst refers to.
func (p *plan) load(dst unsafe.Pointer) shape.Memory {
	if p.kind == sliceKind {
		h := (*shape.SliceHeader)(dst)
		return shape.Memory{Ptr: h.Ptr, N: h.Len}
	}
	return shape.Memory{Ptr: *(*unsafe.Pointer)(dst), N: 1}
}

func (p *plan) store(dst unsafe.Pointer, x shape.Memory) {
	if p.kind == sliceKind {
		*(*shape.SliceHeader)(dst) = shape.SliceHeader{Ptr: x.Ptr, Len: x.N, Cap: x.N}
		return
	}
	*(*unsafe.Pointer)(dst) = x.Ptr
}

// weight is about the memory of the part at dst, which was made of raw bytes.
func (p *plan) weight(dst unsafe.Pointer, raw int) int {
	switch p.kind {
	case sliceKind:
		return (*shape.SliceHeader)(dst).Len*p.elem.size + raw/2
	case pointerKind:
		return p.elem.size + raw/2
	}
	return 2 * raw
}

// isNumber says whether a value is a number or boolean of at most eight bytes.
func (p *plan) isNumber() bool {
	switch p.kind {
	case boolKind, intKind, uintKind, floatKind:
		return p.size <= 8
	}
	return false
}
