package report

import (
	"bytes"
	"fmt"
)

const (
	partBegins = "<!-- bench "
	partNamed  = " -->"
	partEnds   = "<!-- /bench -->"
)

// Fill replaces the generated parts of a document, and returns the new text and
// the names of the parts it found. A part stands between two comments:
//
//	<!-- bench NAME -->…<!-- /bench -->
//
// A part may be a table, with the comments on lines of their own, or a few words
// within a sentence. Everything else stays as it was written by hand.
func Fill(document []byte, parts map[string]string) (filled []byte, names []string, err error) {
	rest := document
	for {
		before, after, found := bytes.Cut(rest, []byte(partBegins))
		filled = append(filled, before...)
		if !found {
			return filled, names, nil
		}
		name, after, found := bytes.Cut(after, []byte(partNamed))
		if !found {
			return nil, nil, fmt.Errorf("a comment begins with %q and has no end", partBegins)
		}
		part, known := parts[string(name)]
		if !known {
			return nil, nil, fmt.Errorf("there is no generated part %q; remove its comments, or add the part to the generator", name)
		}
		old, after, found := bytes.Cut(after, []byte(partEnds))
		if !found || bytes.Contains(old, []byte(partBegins)) {
			return nil, nil, fmt.Errorf("the generated part %q has no end; put %s after it", name, partEnds)
		}
		filled = fmt.Appendf(filled, "%s%s%s%s%s", partBegins, name, partNamed, part, partEnds)
		names = append(names, string(name))
		rest = after
	}
}
