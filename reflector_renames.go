package tarn

// renames maps the key that an object has at the source to the one in the store, where a
// transform has changed it. A later state that cannot be transformed has only the first,
// and the last good state is kept under the second. A transform that renames nothing
// costs nothing.
//
// The map is not kept on disk: a copy that starts from there learns the names again with
// the first whole state, or one by one as objects change.
type renames struct {
	stored map[Key]Key
	// partial says that the store may have objects whose names are not in stored.
	partial bool
}

// record stores the two keys of an object.
func (n *renames) record(source, stored Key) {
	switch {
	case source != stored && n.stored == nil:
		n.stored = map[Key]Key{source: stored}
	case source != stored:
		n.stored[source] = stored
	case n.stored != nil:
		delete(n.stored, source)
	}
}

func (n *renames) forget(source Key) { delete(n.stored, source) }

// of returns the key in the store of an object with a key at the source.
func (n *renames) of(source Key) Key {
	if stored, ok := n.stored[source]; ok {
		return stored
	}
	return source
}

// keep forgets the objects whose key in the store is no longer present.
func (n *renames) keep(present func(stored Key) bool) {
	for source, stored := range n.stored {
		if !present(stored) {
			delete(n.stored, source)
		}
	}
}
