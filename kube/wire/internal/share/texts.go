package share

import (
	"strings"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/recent"
)

// ownText is a string that is in no other object or part, and its position in its
// block.
type ownText struct {
	off  uintptr
	text string
}

// gather puts the strings from mark on, all of one block, into one allocation,
// if the block may be written to. A decoder makes one allocation for each, and
// the garbage collector's time grows with their number. A part that the pool is
// offered has its texts gathered before its checksum is made.
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

// gatherMap puts the strings of a private map into one allocation, as gather does. The
// map may be written to.
//
// Updates come in no order, so that a map is rarely that of the object before. Left as a
// decoder makes them, its strings were a third of the allocations that an updated pod
// holds.
func (w *worker) gatherMap(m map[string]string) {
	pairs, size := w.pairs[:0], 0
	for k, v := range m {
		pairs = append(pairs, [2]string{k, v})
		size += len(k) + len(v)
	}
	w.pairs = pairs
	if size <= recent.LargeText {
		var all strings.Builder
		all.Grow(size)
		for _, p := range pairs {
			from := all.Len()
			all.WriteString(p[0])
			all.WriteString(p[1])
			text := all.String()[from:]
			// An assignment to a key that the map has replaces the key's text too.
			m[text[:len(p[0])]] = text[len(p[0]):]
		}
	}
	clear(pairs)
}
