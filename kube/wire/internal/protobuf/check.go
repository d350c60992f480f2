package protobuf

import "reflect"

// proofs is how often a node is compared with its type's own decoder.
const proofs = 2

// planned says whether to decode a message by its node's plan. The first few times the
// plan is compared with what the type's own Unmarshal does, because a type may have tags
// and do something else. Such a type decodes itself from then on.
func (r *reader) planned(n *node, i, end int) bool {
	left := n.state.Load()
	switch {
	case left == decodesItself:
		return false
	case left == proven || r.decoder == nil || !n.state.CompareAndSwap(left, left-1) || n.dropping != 0:
		return true // or another goroutine compares it now
	}
	raw := r.data[i:end]
	ours, stock, again := reflect.New(n.typ), reflect.New(n.typ), reflect.New(n.typ)
	plain := reader{depth: r.depth} // without a pool it shares nothing and compares nothing
	if !plain.object(n, raw, ours.UnsafePointer()) || n.unmarshal(raw, stock.UnsafePointer()) != nil ||
		reflect.DeepEqual(ours.Interface(), stock.Interface()) {
		return true
	}
	if n.unmarshal(raw, again.UnsafePointer()) == nil && reflect.DeepEqual(stock.Interface(), again.Interface()) {
		n.state.Store(decodesItself) // the difference is not just a NaN, which equals nothing
		return false
	}
	return true
}
