package wire

import (
	"bytes"
	"reflect"
	"unsafe"
)

// checkEvery is how many hits of a reader go by until one is checked for having been
// changed by someone. It takes as long as decoding the part. It is a prime: objects
// that are alike have as many hits each, and each of them has to have its turn.
const checkEvery = 4093

// proofs is how often a node is compared with its type's own decoder.
const proofs = 2

// planned says whether a node's plan is to be used. The first few times it is
// compared with what the type's own Unmarshal does: a type may have tags and do
// something else all the same. Then it decodes itself from now on.
func (r *protoReader) planned(n *protoNode, i, end int) bool {
	left := n.state.Load()
	switch {
	case left == decodesItself:
		return false
	case left == proven || r.decoder == nil || !n.state.CompareAndSwap(left, left-1) || n.dropping != 0:
		return true // or others are at it
	}
	raw := r.data[i:end]
	ours, stock, again := reflect.New(n.typ), reflect.New(n.typ), reflect.New(n.typ)
	plain := protoReader{depth: r.depth} // shares nothing, proves nothing
	if !plain.object(n, raw, ours.UnsafePointer()) || n.unmarshal(raw, stock.UnsafePointer()) != nil ||
		reflect.DeepEqual(ours.Interface(), stock.Interface()) {
		return true
	}
	if n.unmarshal(raw, again.UnsafePointer()) == nil && reflect.DeepEqual(stock.Interface(), again.Interface()) {
		n.state.Store(decodesItself) // and not just a NaN, which equals nothing
		return false
	}
	return true
}

// check compares a shared part with what its bytes say. If someone has changed it,
// it is reported, and replaced for all who come later.
func (r *protoReader) check(f *protoField, x part, i, end, n int) part {
	fresh, ok := r.unshared(f, i, end, n)
	if !ok || equalParts(f, x, fresh) {
		return x
	}
	if again, ok := r.unshared(f, i, end, n); !ok || !equalParts(f, fresh, again) {
		return x // it holds a NaN, which equals nothing
	}
	k := r.pool.saltedKey(f.salt, r.data[i:end])
	r.pool.shard(k).replace(k, fresh)
	r.changedBySomeone(f)
	return fresh
}

// unshared decodes a part by itself.
func (r *protoReader) unshared(f *protoField, i, end, n int) (part, bool) {
	if f.private {
		run := bytes.Clone(r.data[i:end])
		return part{unsafe.Pointer(unsafe.SliceData(run)), len(run)}, true
	}
	plain := protoReader{data: r.data, depth: r.depth}
	made := plain.memory(f, i, end, n, nil)
	if made == nil {
		return part{}, false
	}
	plain.texts.close(r.data, deferredFrame{})
	return part{made, n}, true
}

// equalParts compares two parts of a field.
func equalParts(f *protoField, a, b part) bool {
	if f.private {
		return unsafe.String((*byte)(a.ptr), a.n) == unsafe.String((*byte)(b.ptr), b.n)
	}
	return reflect.DeepEqual(f.value(a), f.value(b))
}

// value is a part as a value of the field's type.
func (f *protoField) value(x part) any {
	header := sliceHeader{ptr: x.ptr, len: x.n, cap: x.n} // of which pointers and maps are the first word
	return reflect.NewAt(f.typ, unsafe.Pointer(&header)).Elem().Interface()
}
