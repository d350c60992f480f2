package etcd

import "testing"

// A revision that the cluster answered before later events came does not look as if it had
// gone back.
func TestCheckThatIsLate(t *testing.T) {
	w := &stream[string]{checks: make(chan check, 1)}
	w.from.Store(10)
	for _, c := range []struct {
		check
		events int
	}{{check{revision: 7, from: 5}, 0}, {check{revision: 7, from: 9}, 1}} {
		w.checks <- c.check
		if err := w.receive(t.Context()); err != nil || len(w.pending) != c.events {
			t.Errorf("revision %d, asked for at %d: %d events (%v)", c.revision, c.from, len(w.pending), err)
		}
	}
}
