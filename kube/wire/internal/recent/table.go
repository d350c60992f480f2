package recent

// Table is a direct-mapped cache: each hash has one slot.
//
// Storing a value replaces the one in its slot. So the latest value is found, a
// table never grows, and storing costs no more than finding.
//
// The owner of a table compares the value of a slot with what it looks for, because
// each owner compares something else: the bytes of a quantity, the content of a
// part, half a hash. Therefore a slot that is empty, or holds something else, is a
// miss and nothing worse.
//
// Why not an LRU list: it costs two pointers for each entry and writes at each hit,
// for entries that are quick to make again.
//
// The recent content of one field is not kept in a Table but beside the statistics
// of the field: there the position of an object's nth part says where to look, and
// no hash is needed.
type Table[V any] struct {
	slots []V
}

// Slot returns the slot of a hash. The first call allocates the slots, a power of
// two.
func (t *Table[V]) Slot(hash uint64, slots int) *V {
	if t.slots == nil {
		t.slots = make([]V, slots)
	}
	return &t.slots[hash&uint64(len(t.slots)-1)]
}

// Empty says whether nothing was ever stored.
func (t *Table[V]) Empty() bool { return t.slots == nil }
