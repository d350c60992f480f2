package wire

import (
	"reflect"
	"unsafe"
)

// An update that takes over what its object had would hand on what a program wrote there
// by mistake. So once a minute for each object it is compared with what the bytes say.
//
// Why not by a digest, as parts of the pool are: it would have to be made of every state
// of every object, while most never change. Here the bytes are at hand.

// verifiedPart is a part of the last state if it is as its bytes say, else one that is.
func (r *protoReader) verifiedPart(f *protoField, x part, i, end, n int) part {
	fresh, ok := r.unshared(f, i, end, n)
	if !ok {
		return x
	}
	again, _ := r.unshared(f, i, end, n)
	if r.intact(f, f.value(x), f.value(fresh), f.value(again), end-i) {
		return x
	}
	return fresh
}

// verifiedMessage is verifiedPart for a message that is part of its struct.
func (r *protoReader) verifiedMessage(f *protoField, kept reflect.Value, i, end int) reflect.Value {
	fresh := r.unsharedMessage(f, i, end)
	if r.intact(f, kept, fresh, r.unsharedMessage(f, i, end), end-i) {
		return kept
	}
	return fresh
}

// intact compares what is held with what its bytes say, and reports it if they differ.
// What does not even equal itself, because it holds a NaN, counts as intact.
func (r *protoReader) intact(f *protoField, held, fresh, again reflect.Value, size int) bool {
	r.pool.verified.Add(uint64(size))
	if sameValue(held.Interface(), fresh.Interface()) || !reflect.DeepEqual(fresh.Interface(), again.Interface()) {
		return true
	}
	key := string(r.name)
	if len(r.namespace) > 0 {
		key = string(r.namespace) + "/" + key
	}
	for _, d := range differences(f.path(), held, fresh) {
		r.pool.stray(strayWrite{by: r.decoder, object: key, field: d.field, memory: d.memory})
	}
	return false
}

// unshared decodes a part by itself.
func (r *protoReader) unshared(f *protoField, i, end, n int) (part, bool) {
	plain := protoReader{data: r.data, depth: r.depth}
	made := plain.memory(f, i, end, n, nil)
	if made == nil {
		return part{}, false
	}
	plain.texts.close(r.data, deferredFrame{})
	return part{made, n}, true
}

func (r *protoReader) unsharedMessage(f *protoField, i, end int) reflect.Value {
	v := reflect.New(f.typ)
	plain := protoReader{data: r.data, depth: r.depth}
	if plain.message(f.child(), i, end, v.UnsafePointer()) {
		plain.texts.close(r.data, deferredFrame{})
	}
	return v
}

// value is a part as a value of the field's type.
func (f *protoField) value(x part) reflect.Value {
	header := &sliceHeader{ptr: x.ptr, len: x.n, cap: x.n} // of which pointers and maps are the first word
	return reflect.NewAt(f.typ, unsafe.Pointer(header)).Elem()
}
