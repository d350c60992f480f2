package share

import (
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// copier copies slices of one type.
//
// It is made once for each type, because reflection needs a lookup to name the
// type of a pointer to a slice. Grow allocates the elements and nothing else.
type copier struct {
	from, to         shape.SliceHeader
	source, received reflect.Value // the slices to copy from and to
}

func (w *worker) copier(s *step) *copier {
	if c := w.copiers[s]; c != nil {
		return c
	}
	c := &copier{}
	c.source = reflect.NewAt(s.t, unsafe.Pointer(&c.from)).Elem()
	c.received = reflect.NewAt(s.t, unsafe.Pointer(&c.to)).Elem()
	if w.copiers == nil {
		w.copiers = map[*step]*copier{}
	}
	w.copiers[s] = c
	return c
}

func (c *copier) copy(src unsafe.Pointer, n int) unsafe.Pointer {
	c.from = shape.SliceHeader{Ptr: src, Len: n, Cap: n}
	c.received.Grow(n)
	c.received.SetLen(n)
	reflect.Copy(c.received, c.source)
	dst := c.to.Ptr
	c.from, c.to = shape.SliceHeader{}, shape.SliceHeader{}
	return dst
}
