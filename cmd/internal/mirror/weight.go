package mirror

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tarnproject/tarn"
)

const (
	// weighRuns samples of weighRun neighbours each are measured.
	weighRuns, weighRun = 8, 32
	// weighEvery is the shortest interval between measurements. A store that takes long to
	// measure is measured less often, so that it never costs more than a thousandth of a
	// processor.
	weighEvery = 30 * time.Second
	weighShare = 1000
)

// weight estimates how much memory an object takes.
//
// It looks at some hundred objects and counts the memory that can be reached from them, each
// piece once even if several objects share it. It samples neighbours by key together, because
// they share most: the pods of one ReplicaSet are next to each other. What they share with
// other objects is counted in full, so the estimate is rather too high than too low. It does
// not include what the store needs besides the objects.
type weight struct {
	estimate atomic.Int64

	mu     sync.Mutex
	next   time.Time
	events int64
}

func (w *weight) perObject() int { return int(w.estimate.Load()) }

// update measures again if a measurement is due and there were events.
func (w *weight) update(now time.Time, store tarn.Reader[Object], events int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.next) || !w.next.IsZero() && events == w.events {
		return
	}
	began := time.Now()
	w.estimate.Store(int64(weigh(store)))
	w.events = events
	w.next = now.Add(max(weighEvery, weighShare*time.Since(began)))
}

func weigh(store tarn.Reader[Object]) int {
	s := &scales{seen: map[unsafe.Pointer]struct{}{}}
	of, at, objects := store.Len(), 0, 0
	for _, object := range store.All() {
		if sampled(at, of) {
			objects++
			s.add(object)
		}
		at++
	}
	if objects == 0 {
		return 0
	}
	return s.bytes / objects
}

// sampled reports whether the object at a place is in one of the runs, which are spread evenly
// over this many objects.
func sampled(at, of int) bool { return at%max(of/weighRuns, weighRun) < weighRun }

// scales add up memory, each piece once.
type scales struct {
	seen  map[unsafe.Pointer]struct{}
	bytes int
}

func (s *scales) add(object Object) {
	if object == nil {
		return
	}
	s.bytes += int(unsafe.Sizeof(*object))
	s.value(object.Object)
}

// once reports whether a piece of memory is new.
func (s *scales) once(p unsafe.Pointer) bool {
	if _, seen := s.seen[p]; seen || p == nil {
		return false
	}
	s.seen[p] = struct{}{}
	return true
}

// value adds what an interface points to.
func (s *scales) value(v any) {
	behind := (*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1]
	switch v := v.(type) {
	case map[string]any:
		if !s.once(behind) {
			return
		}
		s.bytes += mapBytes(len(v))
		for key, value := range v {
			s.text(key)
			s.value(value)
		}
	case []any:
		if !s.once(behind) {
			return
		}
		s.bytes += int(unsafe.Sizeof(v))
		if len(v) == 0 || !s.once(unsafe.Pointer(unsafe.SliceData(v))) {
			return
		}
		s.bytes += cap(v) * int(unsafe.Sizeof(v[0]))
		for _, value := range v {
			s.value(value)
		}
	case string:
		if s.once(behind) {
			s.bytes += int(unsafe.Sizeof(v))
		}
		s.text(v)
	case int64, float64:
		if s.once(behind) {
			s.bytes += 8
		}
	}
}

func (s *scales) text(v string) {
	if len(v) > 0 && s.once(unsafe.Pointer(unsafe.StringData(v))) {
		s.bytes += len(v)
	}
}

// mapBytes is about what a map of n entries takes: a header, and groups of eight
// slots with a control word each. An eighth of the slots stays free once there is more
// than one group.
func mapBytes(n int) int {
	const header, table = 48, 48
	const group = 8 + 8*int(unsafe.Sizeof("")+unsafe.Sizeof(any(nil)))
	switch {
	case n == 0:
		return header
	case n <= 8:
		return header + group
	}
	slots := 16
	for slots*7/8 < n {
		slots *= 2
	}
	return header + table + slots/8*group
}
