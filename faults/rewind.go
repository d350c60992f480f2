package faults

import "fmt"

// Rewind decides whether the server of that name goes back in time now, and by how
// many of its writes: some ([Rewind]), as if restored from an older snapshot, or
// all ([Wipe]). A model server calls it from time to time, say after each write. If
// ok is true, it
//
//   - restores the content and version it had before those writes,
//   - breaks every open stream, since it was restarted,
//   - and from then on answers a watch from a version that it has not reached
//     (again) with silence: no event, no bookmark, no error. A list of such a
//     version it refuses with [tarn.ReasonTooNew].
func (p *Plan) Rewind(name string, writes int) (back int, ok bool) {
	r := p.request(name+" server", fmt.Sprintf("after %d writes", writes))
	if writes <= 0 {
		return 0, false
	}
	if r.injects(Wipe) {
		return writes, true
	}
	d := r.injector(Rewind)
	if !d.draw() {
		return 0, false
	}
	back = 1 + d.IntN(writes)
	if !d.inject(fmt.Sprintf("by %d", back)) {
		return 0, false
	}
	return back, true
}
