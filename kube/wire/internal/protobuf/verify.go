package protobuf

import (
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
	"github.com/tarnproject/tarn/kube/wire/internal/share"
)

// An update that takes over parts of its object's last state would pass on what a
// program wrote there by mistake. So these parts are compared with their bytes once
// a minute for each object.
//
// Why not by a checksum, as parts of the pool are: every state of every object
// would need one, while most never change. Here the bytes are given.

// verifiedPart returns the part of the last state if it matches its bytes, else one
// that does; nil if the bytes cannot be read.
func (r *reader) verifiedPart(f *field, x shape.Memory, i, end, n int) shape.Memory {
	var fresh shape.Memory
	if !r.decodeFresh(func() bool {
		fresh = shape.Memory{Ptr: r.memory(f, i, end, n, nil), N: n}
		return fresh.Ptr != nil
	}) {
		return shape.Memory{}
	}
	if r.intact(f, f.header(x), f.header(fresh), end-i) {
		return x
	}
	return fresh
}

// verifiedMessage takes an inline message over from the last state if it matches
// its bytes there; else it decodes the message to dst.
func (r *reader) verifiedMessage(f *field, last unsafe.Pointer, i, end int, dst unsafe.Pointer) bool {
	if !r.decodeFresh(func() bool { return r.message(f.child(), i, end, dst) }) {
		return false
	}
	if r.intact(f, last, dst, end-i) {
		reflect.NewAt(f.typ, dst).Elem().Set(reflect.NewAt(f.typ, last).Elem())
	}
	return true
}

// decodeFresh decodes without taking anything over from the last state, and uses
// parts of the pool only after they were verified. Nothing of it is remembered for
// the next state.
func (r *reader) decodeFresh(decode func() bool) bool {
	again, admitting, noted, lazies := r.mayHaveLast, r.admitting, r.now.n, r.lazies
	r.mayHaveLast, r.admitting = false, true
	frame := r.texts.open()
	ok := decode()
	if ok {
		r.closeFrame(frame)
	} else {
		r.texts.rewind(frame)
	}
	r.mayHaveLast, r.admitting, r.now.n, r.lazies = again, admitting, noted, lazies
	return ok
}

// intact compares the held value of a field with its bytes, and reports a
// difference.
func (r *reader) intact(f *field, held, fresh unsafe.Pointer, size int) bool {
	r.pool.VerifiedBytes.Add(uint64(size))
	if share.Equal(f.typ, held, fresh) {
		return true
	}
	a, b := reflect.NewAt(f.typ, held).Elem(), reflect.NewAt(f.typ, fresh).Elem()
	if shape.SameValue(a.Interface(), b.Interface()) {
		return true
	}
	key := string(r.name)
	if len(r.namespace) > 0 {
		key = string(r.namespace) + "/" + key
	}
	for _, d := range shape.Differences(f.path(), a, b) {
		r.pool.Report(pool.StrayWrite{By: r.decoder, Object: key, Field: d.Field, Memory: d.Memory})
	}
	return false
}

// header is a part in the form that the field holds.
func (f *field) header(x shape.Memory) unsafe.Pointer {
	return unsafe.Pointer(&shape.SliceHeader{Ptr: x.Ptr, Len: x.N, Cap: x.N}) // a pointer or a map is its first word
}
