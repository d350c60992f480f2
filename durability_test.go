package tarn_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestDurabilityIsProved: the tests that docs/durability.md names are there.
func TestDurabilityIsProved(t *testing.T) {
	doc, err := os.ReadFile("docs/durability.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, folder := range []string{".", "sqlite", "sqlite/ondisk", "metrics", "cmd/internal/mirror", "cmd/internal/web"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
				there[string(m[1])] = true
			}
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(doc, -1)
	if len(named) < 30 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("docs/durability.md names %s, which is in none of the packages", m[1])
		}
	}
}
