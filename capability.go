package tarn

// As finds out whether a store can do more than a [Store] must: C is an interface, such
// as [PrefixReader] or [Durable], or the store's own type. It is the only way in which
// the engine looks for such abilities. A store that wraps another has those of the other
// too, except for the ones that it has itself; so a wrapper forwards nothing by hand.
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

// StoreAs is [As] for the store of a replica. What it returns is for reading; only the
// replica writes.
func StoreAs[C, T any](r *Replica[T]) (C, bool) { return As[C, T](r.store) }
