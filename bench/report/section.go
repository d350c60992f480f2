package report

import (
	"bytes"
	"fmt"
	"os"
)

// WriteSection replaces the section of a page that a program of its own writes: what is
// between <!-- NAME --> and <!-- /NAME -->.
func WriteSection(page, name, text string) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	start, end := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- /%s -->", name)
	head, rest, found := bytes.Cut(content, []byte(start))
	_, tail, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return fmt.Errorf("%s has no section between %q and %q", page, start, end)
	}
	return os.WriteFile(page, fmt.Appendf(nil, "%s%s%s%s%s", head, start, text, end, tail), 0o644)
}
