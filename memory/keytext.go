package memory

import (
	"strings"

	"github.com/tarnproject/tarn"
)

// keyBlock is the size of a block of keys, about twenty of them.
const keyBlock = 1 << 10

// keyTexts clones the keys of new cells. A key may be a piece of its object's text, which
// the cell would keep for as long as any later state of the object is there.
//
// A write of many objects puts many keys into one block, because an allocation for each
// would be one in thirty of those that a synced pod takes. A block stays while one of its
// keys does, so that a deleted object leaves at most its key behind.
type keyTexts struct {
	many  bool
	block strings.Builder
}

func (t *keyTexts) clone(key tarn.Key) tarn.Key {
	if !t.many || len(key) > keyBlock/4 {
		return tarn.Key(strings.Clone(string(key)))
	}
	if t.block.Cap()-t.block.Len() < len(key) {
		t.block = strings.Builder{}
		t.block.Grow(keyBlock)
	}
	from := t.block.Len()
	t.block.WriteString(string(key))
	return tarn.Key(t.block.String()[from:])
}
