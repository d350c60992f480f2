package faults

import "fmt"

// Rewind asks whether the server of that name shall go back in time now, and by
// how many of the writes it has seen: some ([Rewind]), as if restored from an
// older snapshot, or all ([Wipe]). A model server asks from time to time, say
// after each write, and if told so
//
//   - takes its content and its version back to what they were,
//   - breaks every open stream, since it was restarted,
//   - and from then on answers a watch from a version that it has not reached
//     (again) with silence: no event, no bookmark, no error. A list of such a
//     version it refuses with [tarn.ReasonTooNew].
func (p *Plan) Rewind(name string, writes int) (back int, ok bool) {
	r := p.request(name+" server", fmt.Sprintf("after %d writes", writes))
	if writes <= 0 {
		return 0, false
	}
	if r.hits(Wipe) {
		return writes, true
	}
	d := r.dice(Rewind)
	if !d.comesUp() {
		return 0, false
	}
	back = 1 + d.IntN(writes)
	if !d.happens(fmt.Sprintf("by %d", back)) {
		return 0, false
	}
	return back, true
}
