package tarn

// A Front is a store that stands before another, as one with a disk behind it
// does. What it cannot do itself, [StoreAs] looks for in the other.
type Front[T any] interface {
	Behind() ReadStore[T]
}

// StoreAs finds out whether a replica's store can do something that Replica has
// no word for: C is an interface, or the store's own type. What it gives is for
// reading; only the replica writes.
func StoreAs[C, T any](r *Replica[T]) (C, bool) {
	for store := r.store; ; {
		if able, ok := store.(C); ok {
			return able, true
		}
		front, ok := store.(Front[T])
		if !ok {
			var none C
			return none, false
		}
		store = front.Behind()
	}
}
