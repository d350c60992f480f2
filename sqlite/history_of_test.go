package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tarnproject/tarn/changelog"
)

// A long history of a key, and one of large objects, are read in several transactions, and
// each state was valid until the next one was received.
func TestLongHistoryOfAKey(t *testing.T) {
	for _, test := range []struct{ states, size int }{{mostOfKey, 10}, {mostOfKey + 1, 10}, {2*mostOfKey + 1, 10}, {20, mostBytesOfKey / 8}} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			r := newPastRig(t, keepAll)
			for i := range test.states {
				r.set("ns/a", fmt.Sprintf("%d %s", i, strings.Repeat("x", test.size)))
			}
			n, last := 0, changelog.State{}
			for e, err := range r.sink.Log().Of(t.Context(), "ns/a") {
				must(t, err)
				if !strings.Contains(string(e.Object), fmt.Sprintf("%d x", n)) || n > 0 && !last.Until.Equal(e.Heard) {
					t.Fatalf("state %d is %.40s, heard at %s; the one before was valid until %s", n, e.Object, e.Heard, last.Until)
				}
				n, last = n+1, e.State
			}
			if n != test.states || !last.Until.IsZero() {
				t.Errorf("%d of %d states are read, the last until %s", n, test.states, last.Until)
			}
		})
	}
}
