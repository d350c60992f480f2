package jetstream

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// A feeder leaves a bucket of another resource alone, while that is fed and afterwards. It takes
// a bucket that does not say which resource it has.
func TestBucketOfAnotherResource(t *testing.T) {
	t.Parallel()
	js := startServer(t).connect()
	one, two := Bucket{Name: "b", Resource: "gears.a-b"}, Bucket{Name: "b", Resource: "gears.a.b"}
	refused := func() {
		t.Helper()
		s := newSink(t, js, two)
		_, err := s.Open(t.Context(), nil)
		for _, err := range []error{err, s.Claim(t.Context())} {
			if !errors.Is(err, ErrOtherResource) || !strings.Contains(err.Error(), "has gears.a-b, and this feeder writes gears.a.b") {
				t.Errorf("it says %v", err)
			}
		}
		s.Close()
	}
	s := opened(t, js, Bucket{Name: "b"})
	commit(t, s, to("1", change(tarn.Add, "a", "1", "")))
	s.Close()
	s = opened(t, js, one)
	commit(t, s, to("2", change(tarn.Add, "b", "2", "")))
	refused()
	s.Close()
	refused()
	s = opened(t, js, Bucket{Name: "b"})
	commit(t, s, to("3", change(tarn.Add, "c", "3", "")))
	s.Close()
	refused()
	s = opened(t, js, one)
	defer s.Close()
	commit(t, s, to("4"))
	if got := heldKeys(t, s); !slices.Equal(got, []string{"a@1", "b@2", "c@3"}) {
		t.Errorf("the bucket has %v", got)
	}
}
