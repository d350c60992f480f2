package tarn

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Moves from and to other shards (in parentheses) are hidden from a subscriber that does not
// ask for them. Its pending changes must still lead to the present object.
func TestFoldRulesOfAShardThatChanges(t *testing.T) {
	for _, test := range []struct{ name, known, publish, want string }{
		{"an object that leaves, and another one of its name", "", "+a1 (-a1) +a2", "+a2"},
		{"the same, after a delete", "a0", "-a1 +a2 (-a2) +a3", "-a0>a1 +a3"},
		{"the same, of a known object", "a0", "~a1 (-a1) +a2", "~a0>a2"},
		{"a delete, and one of its name that enters", "a0", "-a1 (+a2) ~a3", "-a0>a1 ~a2>a3"},
		{"which changes again", "a0", "-a1 (+a2) ~a3 ~a4", "-a0>a1 ~a2>a4"},
		{"which is deleted again", "a0", "-a1 (+a2) ~a3 -a4", "-a0>a1"},
		{"which is deleted at once", "a0", "-a1 (+a2) -a3", "-a0>a1"},
		{"which leaves again, and yet another one", "a0", "-a1 (+a2) ~a3 (-a3) +a4", "-a0>a1 ~a2>a4"},
		{"which is only offered again", "a0", "-a1 (+a2) =a", "-a0>a1 =a2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, b := newScript(test.known), backlogOf(0)
			for _, word := range strings.Fields(test.publish) {
				if hidden, ok := strings.CutPrefix(word, "("); ok {
					s.parse(strings.TrimSuffix(hidden, ")"))
					continue
				}
				b.add(time.Now(), []Change[*entry]{s.parse(word)})
			}
			if diff := cmp.Diff(test.want, show(takeAll(b, handOver))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
