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

// To a subscriber that asks for moves, an object that left, came back and was deleted is
// deleted, and has not only left.
func TestFoldOfADeleteAfterMoves(t *testing.T) {
	const gone, moved = "deleted", "moved"
	for _, test := range []struct {
		name   string
		second bool // whether the last delete is a move
		want   string
	}{
		{"deleted in the end", false, gone},
		{"moved twice", true, moved},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, b := newScript("a0"), backlogOf(0)
			for i, word := range []string{"-a0", "+a1", "-a1"} {
				c := s.parse(word)
				c.Moved = i < 2 || test.second
				b.add(time.Now(), []Change[*entry]{c})
			}
			changes := takeAll(b, handOver)
			if len(changes) != 1 || changes[0].Type != Delete {
				t.Fatalf("the subscriber gets %s", show(changes))
			}
			got := gone
			if changes[0].Moved {
				got = moved
			}
			if got != test.want {
				t.Errorf("the object is %s, want %s", got, test.want)
			}
		})
	}
}
