package recent

import "hash/maphash"

// MaxText is the length of the longest text, and TextSlots the number of texts, that are
// remembered. Words such as "Running" and "default-scheduler", the names of nodes and
// images repeat; they are some 300 bytes of each pod.
const (
	MaxText   = 256
	TextSlots = 4096
)

// Texts remembers texts by their hash.
//
// It differs from [Table] in what it admits. A text gets a copy of its own when it
// is seen for the second time in a row in its slot, because the first one lies
// among the text of its object, and would keep all of that. A text that was used
// since another one came stays once more. Most texts are seen once: under the plain
// rule they would push out those that repeat, and each would cost a copy.
//
// Why not in the pool: a word is shorter than an entry of the pool, and a lookup
// there takes longer than copying it.
type Texts struct {
	table Table[textSlot]
}

type textSlot struct {
	text string
	// seen is the hash of the last unknown text here.
	seen uint32
	// used is set when the text is handed out. While it is set, another text only
	// clears it.
	used bool
}

// Get returns the text of raw, if it is known.
func (t *Texts) Get(seed maphash.Seed, raw []byte) (string, bool) {
	hash := maphash.Bytes(seed, raw)
	slot, mark := t.table.Slot(hash, TextSlots), uint32(hash>>32)|1
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

// LargeText is the length above which a text gets an allocation of its own: it has
// nothing to gain from lying beside others, and what keeps another text of the object
// need not keep it too.
const LargeText = 4096
