package recent

import "hash/maphash"

// MaxText is the longest text, and TextSlots the number of texts, that a reader
// remembers. Words such as "Running" and "default-scheduler", the names of nodes
// and images come again and again; some 300 bytes of each pod.
const (
	MaxText   = 256
	TextSlots = 4096
)

// Texts remembers strings by their hash, in one place each.
//
// Why not in the pool: a word is shorter than an entry of the pool, and looking
// there takes longer than copying it. Text gets a copy of its own when it is met
// for the second time, because the first one lies among the text of its object,
// all of which it would keep.
type Texts struct {
	slots []textSlot
}

type textSlot struct {
	text string
	// seen is the hash of the text that was last seen here and is not known.
	seen uint32
	// used is set when the text is given out, and must be lost before the text is.
	used bool
}

func (m *Texts) Get(seed maphash.Seed, raw []byte) (string, bool) {
	if m.slots == nil {
		m.slots = make([]textSlot, TextSlots)
	}
	hash := maphash.Bytes(seed, raw)
	slot, mark := &m.slots[hash%TextSlots], uint32(hash>>32)|1
	switch {
	case slot.text == string(raw):
		slot.used = true
		return slot.text, true
	case slot.seen != mark:
		slot.seen = mark
		return "", false
	case slot.used:
		slot.used = false
		return "", false
	}
	slot.text, slot.used = string(raw), true
	return slot.text, true
}

// LargeText gets an allocation of its own: it has nothing to gain, and what keeps
// another string of the object need not keep it too.
const LargeText = 4096
