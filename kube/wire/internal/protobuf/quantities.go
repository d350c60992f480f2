package protobuf

import (
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// quantitySlots is how many quantities a reader remembers. Objects have few
// different ones, and parsing one takes ten times as long as copying it.
const quantitySlots = 64

// recentQuantity is a quantity that was read recently, with its bytes.
type recentQuantity struct {
	raw string
	resource.Quantity
}

// quantity decodes a quantity, and says whether it could.
func (r *reader) quantity(raw []byte) (resource.Quantity, bool) {
	var q resource.Quantity
	if r.pool == nil || len(raw) == 0 || len(raw) > 16 {
		return q, q.Unmarshal(raw) == nil
	}
	known := r.quantities.Slot(maphash.Bytes(r.pool.Seed, raw), quantitySlots)
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
func (r *reader) time(i, end int, dst *metav1.Time) bool {
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

// timestamp reads the seconds of a time in the form that writers use: seconds, then
// nanoseconds, which Kubernetes ignores.
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

func (r *reader) timePointer(i, end int, dst **metav1.Time) bool {
	var t metav1.Time
	if !r.time(i, end, &t) {
		return false
	}
	r.texts.time(t, dst)
	return true
}
