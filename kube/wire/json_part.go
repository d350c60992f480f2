package wire

import "unsafe"

// load returns what the slice, map or pointer at dst refers to.
func (p *jsonPlan) load(dst unsafe.Pointer) part {
	if p.kind == sliceKind {
		h := (*sliceHeader)(dst)
		return part{h.ptr, h.len}
	}
	return part{*(*unsafe.Pointer)(dst), 1}
}

func (p *jsonPlan) store(dst unsafe.Pointer, x part) {
	if p.kind == sliceKind {
		*(*sliceHeader)(dst) = sliceHeader{x.ptr, x.n, x.n}
		return
	}
	*(*unsafe.Pointer)(dst) = x.ptr
}

// weight is about the memory of the part at dst, which was made of raw bytes.
func (p *jsonPlan) weight(dst unsafe.Pointer, raw int) int {
	switch p.kind {
	case sliceKind:
		return (*sliceHeader)(dst).len*p.elem.size + raw/2
	case pointerKind:
		return p.elem.size + raw/2
	}
	return 2 * raw
}

// isNumber says whether a value is a number or boolean of at most eight bytes.
func (p *jsonPlan) isNumber() bool {
	switch p.kind {
	case boolKind, intKind, uintKind, floatKind:
		return p.size <= 8
	}
	return false
}
