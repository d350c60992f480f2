package faults

import "fmt"

// wire injects faults into a sequence of bytes: it ends at some byte, or has bytes
// changed. Positions are counted in bytes sent, so that the sizes of reads and
// writes make no difference.
type wire struct {
	// end decides what happens at byte stop; nil if nothing.
	end  *injector
	stop int64
	// garble decides which bytes are changed, beginning with byte next; nil if
	// none. garbled says that it has begun.
	garble  *injector
	next    int64
	garbled bool
	// passed counts the bytes so far.
	passed int64
}

// wireEnds are tried in this order; there is one end only.
var wireEnds = [...]Kind{Reset, Stall, Truncate}

// wire draws the faults of a body or connection.
func (r *request) wire() *wire {
	w := &wire{}
	most := r.plan.limits.Bytes
	for _, kind := range wireEnds {
		if d := r.injector(kind); d.draw() {
			w.end, w.stop = d, count(d.Rand, most)
			break
		}
	}
	if d := r.injector(Garble); d.draw() {
		w.garble, w.next = d, count(d.Rand, most)
	}
	return w
}

// clean reports that there are no faults.
func (w *wire) clean() bool { return w.end == nil && w.garble == nil }

// room is how many of n bytes may pass now. If it is 0, the sequence ends here with
// the kind returned, which has been recorded.
func (w *wire) room(n int) (int, Kind) {
	if w.end == nil || n == 0 {
		return n, ""
	}
	if left := w.stop - w.passed; left > 0 {
		return int(min(int64(n), left)), ""
	}
	end := w.end
	w.end = nil
	if !end.inject(fmt.Sprintf("at byte %d", w.passed)) {
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
			if !w.garble.inject(fmt.Sprintf("from byte %d on", w.next)) {
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
