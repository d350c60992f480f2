package tarn

// A Front is a store that stands before another, as one with a disk behind it
// does. What it cannot do itself, [StoreAs] looks for in the other.
type Front[T any] interface {
	Behind() ReadStore[T]
}

// A Holder is a store, or the front of one, whose objects are in memory. It may be
// asked by any number of goroutines at a time.
type Holder interface {
	// Held returns the object that was last written under a key: the same one, not
	// one that is made of its bytes.
	Held(key Key) (object any, ok bool)
	// Len is the number of objects.
	Len() int
}

// StoreAs finds out whether a replica's store can do something that Replica has
// no word for: C is an interface, or the store's own type. What it gives is for
// reading; only the replica writes.
func StoreAs[C, T any](r *Replica[T]) (C, bool) {
	return storeAs[C](r.store)
}

func storeAs[C, T any](store ReadStore[T]) (C, bool) {
	for {
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
