package wire

import (
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// memoText is the longest text, and memoSlots the number of texts, that a reader
// remembers. Words such as "Running" and "default-scheduler", the names of nodes
// and images come again and again; some 300 bytes of each pod.
const (
	memoText  = 256
	memoSlots = 4096
)

// textMemo remembers strings by their hash, in one place each.
//
// Why not in the pool: a word is shorter than an entry of the pool, and looking
// there takes longer than copying it. Text gets a copy of its own when it is met
// for the second time, because the first one lies among the text of its object,
// all of which it would keep.
type textMemo struct {
	slots []textSlot
}

type textSlot struct {
	text string
	// met is the hash of the text that was last met here and is not known.
	met uint32
	// used is set when the text is given out, and must be lost before the text is.
	used bool
}

func (m *textMemo) get(seed maphash.Seed, raw []byte) (string, bool) {
	if m.slots == nil {
		m.slots = make([]textSlot, memoSlots)
	}
	hash := maphash.Bytes(seed, raw)
	slot, mark := &m.slots[hash%memoSlots], uint32(hash>>32)|1
	switch {
	case slot.text == string(raw):
		slot.used = true
		return slot.text, true
	case slot.met != mark:
		slot.met = mark
		return "", false
	case slot.used:
		slot.used = false
		return "", false
	}
	slot.text, slot.used = string(raw), true
	return slot.text, true
}

// quantityMemo remembers quantities that were read lately: there are few of them, and
// to read one takes ten times as long as to copy it.
type quantityMemo [64]struct {
	raw string
	resource.Quantity
}

// quantity decodes a quantity, and says whether it could.
func (r *protoReader) quantity(raw []byte) (resource.Quantity, bool) {
	var q resource.Quantity
	if r.pool == nil || len(raw) == 0 || len(raw) > 16 {
		return q, q.Unmarshal(raw) == nil
	}
	known := &r.quantities[maphash.Bytes(r.pool.seedA, raw)%uint64(len(r.quantities))]
	if known.raw == string(raw) {
		return known.DeepCopy(), true
	}
	if q.Unmarshal(raw) != nil {
		return q, false
	}
	known.raw, known.Quantity = string(raw), q
	return q.DeepCopy(), true
}

// time decodes a time, and says whether it could.
func (r *protoReader) time(i, end int, dst *metav1.Time) bool {
	if i == end {
		*dst = metav1.Time{}
		return true
	}
	if seconds, ok := timestamp(r.data[:end], i); ok {
		dst.Time = time.Unix(seconds, 0).Local()
		return true
	}
	return dst.Unmarshal(r.data[i:end]) == nil
}

// timestamp reads the seconds of a time as writers write it: seconds, then
// nanoseconds, which Kubernetes leaves out of account.
func timestamp(b []byte, i int) (int64, bool) {
	if b[i] != 1<<3|wireVarint {
		return 0, false
	}
	seconds, i := varint(b, i+1)
	if i >= 0 && i < len(b) && b[i] == 2<<3|wireVarint {
		_, i = varint(b, i+1)
	}
	return int64(seconds), i == len(b)
}

func (r *protoReader) timePointer(i, end int, dst **metav1.Time) bool {
	var t metav1.Time
	if !r.time(i, end, &t) {
		return false
	}
	r.texts.time(t, dst)
	return true
}
