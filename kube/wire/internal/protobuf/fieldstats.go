package protobuf

import (
	"bytes"
	"math/bits"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/recent"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// fieldStats are a reader's statistics of all fields, and the last content of each: how
// often content is found in the pool, in the last state, and earlier in the object itself.
// The statistics are small and apart from the content, so that skipping a field
// reads no other memory.
type fieldStats struct {
	inPool      []recent.Repetition
	inLastState []recent.Repetition
	inObject    []recent.Repetition
	last        []lastContent
	kept        int // bytes in last
	// objects counts the objects that were decoded.
	objects uint32
}

// lastContent is the last content of a field: its texts, or the parts that were
// found in the pool, with their bytes. The nth content of a field in an object,
// such as the ports of its nth container, is compared with the nth content in the
// object before.
//
// It is not a [recent.Table]: the position says where to look, and no hash is made.
type lastContent struct {
	object uint32 // the last object that has the field
	turn   uint32 // how often it has the field
	texts  [lastTexts]string
	parts  *[lastParts]lastPart
}

// next counts the contents of an object.
func (l *lastContent) next(object uint32) (turn uint32) {
	if l.object != object {
		l.object, l.turn = object, 0
	}
	l.turn++
	return l.turn - 1
}

// lastPart is a part with its bytes. It is used until it is due to be verified.
type lastPart struct {
	raw []byte
	shape.Memory
	checked pool.Seconds
}

// lastBytes is the size up to which the bytes of a part are kept for comparison, and
// lastTotal the size of all such bytes at which a reader forgets them.
const (
	lastBytes = 16 << 10
	lastTotal = 512 << 10
	lastTexts = 2
	lastParts = 4
)

// index returns the slot of a field with content of about this size. Where a list
// has two kinds of entries, one that repeats and one that does not, they mostly
// differ in size.
func (h *fieldStats) index(f *field, size int) int {
	i := int(f.statIndex)*4 + bits.Len(uint(size))%4
	if i >= len(h.inPool) {
		more := i + 64 - len(h.inPool)
		h.inPool = append(h.inPool, make([]recent.Repetition, more)...)
		h.inLastState = append(h.inLastState, make([]recent.Repetition, more)...)
		h.inObject = append(h.inObject, make([]recent.Repetition, more)...)
		h.last = append(h.last, make([]lastContent, more)...)
	}
	return i
}

// inObject says how often content of a field is found earlier in the object; nil if nothing
// is shared.
func (r *reader) inObject(f *field, size int) *recent.Repetition {
	if r.pool == nil {
		return nil
	}
	return &r.stats.inObject[r.stats.index(f, size)]
}

// findLast finds a part among the last ones. Comparing bytes takes a tenth of the
// time of hashing them, and in a list the next object is often like the last one.
func (h *fieldStats) findLast(i int, raw []byte, now pool.Seconds) (x pool.Part, turn uint32) {
	l := &h.last[i]
	turn = l.next(h.objects)
	if l.parts == nil {
		return pool.Part{}, turn
	}
	if l := &l.parts[turn%lastParts]; l.Ptr != nil && !l.checked.Due(now) && bytes.Equal(l.raw, raw) {
		return pool.Part{Memory: l.Memory}, turn
	}
	return pool.Part{}, turn
}

// lastText is the slot of the last text.
func (h *fieldStats) lastText(i int) *string {
	l := &h.last[i]
	return &l.texts[l.next(h.objects)%lastTexts]
}

// forget drops the last contents of all fields.
func (h *fieldStats) forget() {
	clear(h.last)
	h.kept = 0
}

// remember makes a part one of the last. It must have been found in the pool, which
// then knows that it is shared.
func (h *fieldStats) remember(i int, turn uint32, raw []byte, x pool.Part) {
	if len(raw) > lastBytes {
		return
	}
	if h.kept > lastTotal {
		h.forget()
	}
	if h.last[i].parts == nil {
		h.last[i].parts = new([lastParts]lastPart)
	}
	l := &h.last[i].parts[turn%lastParts]
	h.kept -= cap(l.raw)
	l.raw, l.Memory, l.checked = append(l.raw[:0], raw...), x.Memory, x.Checked
	h.kept += cap(l.raw)
}
