package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unsafe"
)

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

// scalar decodes what a pointer to a number or boolean points to. The pool has small
// ones ready.
func (s *jsonState) scalar(p *jsonPlan, dst unsafe.Pointer, i int, site uint) int {
	if p.kind != pointerKind {
		return odd
	}
	var n int64
	end := odd
	switch p.elem.kind {
	case boolKind:
		if end = jsonWord(s.data, i, "true"); end != odd {
			n = 1
		} else {
			end = jsonWord(s.data, i, "false")
		}
	case intKind:
		var integer, small bool
		if end, integer = jsonNumber(s.data, i); end != odd {
			n, small = jsonSmallInt(unsafe.String(&s.data[i], end-i))
		}
		if !integer || !small || n < 0 || n >= smallLimit || p.elem.size < 4 {
			end = odd
		}
	}
	if end == odd {
		return s.fresh(p, dst, i, site)
	}
	at, value := s.small(p.elem, n)
	if value != n {
		s.mutated(p, s.data[i:end])
		s.pool.heal(s.pool.small.Load())
		at, _ = s.small(p.elem, n)
	}
	*(*unsafe.Pointer)(dst) = at
	return end
}

// small returns where the pool has a small value, and what is there.
func (s *jsonState) small(p *jsonPlan, n int64) (at unsafe.Pointer, value int64) {
	ready := s.pool.small.Load()
	switch {
	case p.kind == boolKind:
		x := &ready.bools[n]
		if *x {
			value = 1
		}
		return unsafe.Pointer(x), value
	case p.size == 4:
		x := &ready.int32s[n]
		return unsafe.Pointer(x), int64(*x)
	default:
		x := &ready.int64s[n]
		return unsafe.Pointer(x), *x
	}
}

// checked returns the part that was found for the value between i and end, or if it
// is this one's turn to be checked and someone has changed it, one that is as it
// should be.
func (s *jsonState) checked(p *jsonPlan, k key, x part, i, end int) part {
	if s.hits++; s.hits%checkEvery != 0 {
		return x
	}
	pool := s.pool
	s.pool = nil
	defer func() { s.pool = pool }()
	have, want := reflect.New(p.typ), reflect.New(p.typ)
	p.store(have.UnsafePointer(), x)
	if s.fresh(p, want.UnsafePointer(), i, 0) != end || sameValue(have.Elem().Interface(), want.Elem().Interface()) {
		return x
	}
	s.pool = pool
	s.mutated(p, s.data[i:end])
	pool.mutated()
	x = p.load(want.UnsafePointer())
	pool.shard(k).replace(k, x)
	return x
}

// sameValue compares by content, and where that differs by what is written of it: a
// quantity remembers its text once someone has asked for it, which changes nothing.
func sameValue(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// mutated reports that the part made of raw is not what it was.
func (s *jsonState) mutated(p *jsonPlan, raw []byte) {
	if s.onMutation == nil {
		return
	}
	const enough = 120
	text, more := raw, ""
	if len(text) > enough {
		text, more = text[:enough], "..."
	}
	s.onMutation(fmt.Errorf("wire: a shared %v, decoded from %s%s, was changed by someone: objects from a cache are read-only, change a deep copy", p.typ, text, more))
}
