package share

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// ownScalars are the numbers and times behind pointers that belong to one
// object. A decoder allocates each by itself. Here one allocation holds all of
// a kind, because the garbage collector's time grows with the number of
// allocations.
type ownScalars struct {
	numbers []ownNumber
	times   []**metav1.Time
}

// ownNumber is a pointer to a number of at most eight bytes.
type ownNumber struct {
	at   *unsafe.Pointer
	size uintptr
}

// add records the pointer at, to a value of a plan, if its kind is gathered, and says
// whether it is.
func (s *ownScalars) add(at *unsafe.Pointer, of *plan) bool {
	switch {
	case of.t == shape.TimeType:
		s.times = append(s.times, (**metav1.Time)(unsafe.Pointer(at)))
	case of.memory && of.size <= 8:
		s.numbers = append(s.numbers, ownNumber{at, of.size})
	default:
		return false
	}
	return true
}

// gather moves the recorded values.
func (s *ownScalars) gather() {
	if len(s.numbers) > 1 {
		memory := make([]uint64, len(s.numbers))
		for i, n := range s.numbers {
			to := unsafe.Pointer(&memory[i])
			copy(unsafe.Slice((*byte)(to), n.size), unsafe.Slice((*byte)(*n.at), n.size))
			*n.at = to
		}
	}
	if len(s.times) > 1 {
		memory := make([]metav1.Time, len(s.times))
		for i, at := range s.times {
			memory[i] = **at
			*at = &memory[i]
		}
	}
	s.forget()
}

func (s *ownScalars) forget() {
	clear(s.numbers)
	clear(s.times)
	s.numbers, s.times = s.numbers[:0], s.times[:0]
}
