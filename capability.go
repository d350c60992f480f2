package tarn

// As looks up an optional ability of a store. C is an interface, such as [PrefixReader]
// or [Durable], or the store's own type. It is the only way in which the engine looks for
// abilities. If a wrapper does not implement C itself, As asks the store that it wraps, so
// that a wrapper forwards nothing by hand.
func As[C, T any](store Store[T]) (C, bool) {
	for {
		if able, ok := store.(C); ok {
			return able, true
		}
		wrapper, ok := store.(StoreWrapper[T])
		if !ok {
			var none C
			return none, false
		}
		store = wrapper.Unwrap()
	}
}

// StoreAs is [As] for the store of a replica. The result is for reading; only the replica
// writes.
func StoreAs[C, T any](r *Replica[T]) (C, bool) { return As[C, T](r.store) }
