package tarn_test

import (
	"os"
	"strings"
	"testing"
)

// TestProtocol tells the stories of docs/protocol.md, except for those that begin
// with what is on disk, which TestWarmRestart tells.
func TestProtocol(t *testing.T) { tellStories(t, "protocol") }

// TestProtocolIsWrittenDown compares docs/protocol.md with the stories: each cell
// names a story that exists, and each story is named by a cell.
func TestProtocolIsWrittenDown(t *testing.T) {
	doc, err := os.ReadFile("docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	stories := map[string]bool{}
	for _, f := range append(readStories(t, "protocol"), readStories(t, "restart")...) {
		for _, s := range f.Stories {
			if stories[s.Name] {
				t.Errorf("two files have a story %q", s.Name)
			}
			stories[s.Name] = true
		}
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(doc)) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.TrimSpace(cells[0]) == "event" {
			continue
		}
		name := strings.Trim(strings.TrimSpace(cells[2]), "`")
		named[name] = true
		if !stories[name] {
			t.Errorf("the cell %q names a story that does not exist: %q", strings.TrimSpace(cells[0]), name)
		}
	}
	for name := range stories {
		if !named[name] {
			t.Errorf("no cell of docs/protocol.md names the story %q", name)
		}
	}
}
