package share

import (
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/recent"
)

// ownText is a string that is in no other object, and its position in its
// block.
type ownText struct {
	off  uintptr
	text string
}

// gather puts the strings from mark on, all of one block, into one allocation,
// if the block may be written to. A decoder makes one allocation for each, and
// the garbage collector's time grows with their number.
//
// Why not those of the whole object into one: the object's next state takes
// over what has not changed, and would keep all text with it.
func (w *worker) gather(b *block, mark int) {
	texts := w.texts[mark:]
	size := 0
	for _, t := range texts {
		size += len(t.text)
	}
	if b.dst != nil && len(texts) > 1 && size <= recent.LargeText {
		all := make([]byte, 0, size)
		for _, t := range texts {
			from := len(all)
			all = append(all, t.text...)
			*(*string)(unsafe.Add(b.dst, t.off)) = unsafe.String(&all[from], len(t.text))
		}
	}
	clear(texts)
	w.texts = w.texts[:mark]
}
