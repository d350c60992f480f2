package verify

import (
	"testing"
	"testing/synctest"
)

// Where a transform removes versions, nothing proves that a different object has
// only changed meanwhile: it does not count as equal.
func TestTransformWithoutVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20, transform: func(o object) (object, error) {
			o.SetResourceVersion("")
			return o, nil
		}})
		l.meddle = noPast
		l.want(l.once(Options{}), Equal, 0, 0, 0)
		l.corrupt(keyOf(4), setText("wrong"))
		r := l.once(Options{})
		l.want(r, Unknown, 0, 0, 0)
		if r.Undecided != 1 || r.Skipped != 0 {
			t.Error(r)
		}
		l.meddle = nil
		l.want(l.once(Options{}), Different, 0, 0, 1)
	})
}
