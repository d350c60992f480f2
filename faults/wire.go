package faults

import "fmt"

// wire is a run of bytes on which something happens at some byte: it may come to
// an end there, or have bytes changed. Positions are counted in bytes sent, so
// that it makes no difference in which portions they are read or written.
type wire struct {
	// end decides what happens at byte stop; nil if nothing.
	end  *dice
	stop int64
	// garble decides which bytes are changed, beginning with byte next; nil if
	// none. garbled says that it has begun.
	garble  *dice
	next    int64
	garbled bool
	// passed counts the bytes so far.
	passed int64
}

// wireEnds are tried in this order; there is one end only.
var wireEnds = [...]Kind{Reset, Stall, Truncate}

// wire decides about the bytes of a body or connection.
func (r *request) wire() *wire {
	w := &wire{}
	most := r.plan.limits.Bytes
	for _, kind := range wireEnds {
		if d := r.dice(kind); d.comesUp() {
			w.end, w.stop = d, count(d.Rand, most)
			break
		}
	}
	if d := r.dice(Garble); d.comesUp() {
		w.garble, w.next = d, count(d.Rand, most)
	}
	return w
}

// clean says that nothing will ever happen.
func (w *wire) clean() bool { return w.end == nil && w.garble == nil }

// room is how many of n bytes may pass now. With 0 its end has come, which is
// then recorded, and is of the kind returned.
func (w *wire) room(n int) (int, Kind) {
	if w.end == nil || n == 0 {
		return n, ""
	}
	if left := w.stop - w.passed; left > 0 {
		return int(min(int64(n), left)), ""
	}
	end := w.end
	w.end = nil
	if !end.happens(fmt.Sprintf("at byte %d", w.passed)) {
		return n, ""
	}
	return 0, end.kind
}

// pass counts bytes and changes those that are due.
func (w *wire) pass(p []byte) {
	begin := w.passed
	w.passed += int64(len(p))
	for w.garble != nil && w.next < w.passed {
		if !w.garbled {
			if !w.garble.happens(fmt.Sprintf("from byte %d on", w.next)) {
				w.garble = nil
				return
			}
			w.garbled = true
		} else if w.garble.request.plan.ended() {
			w.garble = nil
			return
		}
		p[w.next-begin] ^= byte(1 + w.garble.IntN(255))
		w.next += 1 + count(w.garble.Rand, w.garble.request.plan.limits.Bytes)
	}
}
