package protobuf

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deferredNumber is a pointer to be set, and the number that it will point to.
type deferredNumber struct {
	dst  *unsafe.Pointer
	bits uint64
}

// Numbers are kept by their size, the largest first, so that each lies at a multiple
// of its size.
const (
	number8 = iota
	number4
	number1
	numberSizes
)

var numberBytes = [numberSizes]int{8, 4, 1}

// number defers a number of one of these sizes.
func (d *deferred) number(size int, bits uint64, dst unsafe.Pointer) {
	d.numbers[size] = append(d.numbers[size], deferredNumber{(*unsafe.Pointer)(dst), bits})
	d.size += numberBytes[size]
}

// setNumbers places the numbers of a frame at the beginning of its memory.
func (d *deferred) setNumbers(slab []byte, frame deferredFrame) []byte {
	for size := range d.numbers {
		for _, n := range d.numbers[size][frame.numbers[size]:] {
			at := len(slab)
			slab = slab[:at+numberBytes[size]]
			*n.dst = unsafe.Pointer(&slab[at])
			switch size {
			case number8:
				*(*uint64)(*n.dst) = n.bits
			case number4:
				*(*uint32)(*n.dst) = uint32(n.bits)
			case number1:
				slab[at] = byte(n.bits)
			}
		}
	}
	return slab
}

// deferredTime is a pointer to be set, and the time that it will point to.
type deferredTime struct {
	dst  **metav1.Time
	time metav1.Time
}

func (d *deferred) time(t metav1.Time, dst **metav1.Time) {
	d.times = append(d.times, deferredTime{dst, t})
}

// setTimes places the times of a frame, each once: many times of an object are
// equal to the second. It returns how many bytes they take.
func (d *deferred) setTimes(frame deferredFrame) int {
	times := d.times[frame.times:]
	if len(times) == 0 {
		return 0
	}
	made := make([]metav1.Time, 0, countDifferent(times))
next:
	for _, t := range times {
		for i := range made {
			if made[i] == t.time {
				*t.dst = &made[i]
				continue next
			}
		}
		made = append(made, t.time)
		*t.dst = &made[len(made)-1]
	}
	return len(made) * int(unsafe.Sizeof(metav1.Time{}))
}

func countDifferent(times []deferredTime) (n int) {
next:
	for i, t := range times {
		for _, before := range times[:i] {
			if before.time == t.time {
				continue next
			}
		}
		n++
	}
	return n
}
