package render

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// outline walks an object and writes it as YAML, line by line.
//
// Why not a YAML library: the page needs to know which line belongs to which field,
// and would have to parse the library's output to learn it. And the libraries build
// the whole text in memory, indented as deep as the object is nested.
type outline struct {
	to lineWriter
	// more counts the lines that were not written because the writer was full.
	more int
}

// lineWriter takes the lines of an outline.
type lineWriter interface {
	// line takes the next line. lead is indentation and dashes, key has no colon.
	line(path *Path, lead, key, value string)
	// full reports that the writer takes no more lines. The rest is only counted.
	full() bool
	// inline reports whether a value at this depth belongs on one line, and as
	// formats it so.
	inline(value any, depth int) bool
	as(value any) string
}

// longestKey is the longest key in YAML without a ? before it, with a margin for quotes.
const longestKey = 1000

// mapping writes the fields of a map. The first line begins with first, which may
// have a dash, the others with indent.
func (o *outline) mapping(m map[string]any, path *Path, first, indent string) {
	if len(m) == 0 {
		o.to.line(path, first, "", "{}")
		return
	}
	lead := first
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if o.to.full() {
			o.more += o.countField(name, m[name], path.Depth()+1)
			continue
		}
		if key := keyText(name); len(key) > longestKey {
			o.longField(m[name], path.Field(name), lead, key, indent)
		} else {
			o.field(m[name], path.Field(name), lead, key, indent)
		}
		lead = indent
	}
}

func keyText(name string) string {
	if plain(name) {
		return name
	}
	return quoted(name)
}

func (o *outline) field(value any, path *Path, lead, key, indent string) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 && !o.to.inline(value, path.Depth()) {
			o.to.line(path, lead, key, "")
			o.mapping(value, path, indent+"  ", indent+"  ")
			return
		}
	case []any:
		if len(value) > 0 && !o.to.inline(value, path.Depth()) {
			o.to.line(path, lead, key, "")
			o.sequence(value, path, indent, indent)
			return
		}
	case string:
		if header, ok := block(value); ok && !o.to.inline(value, path.Depth()) {
			o.to.line(path, lead, key, header)
			o.block(value, path, indent+"  ")
			return
		}
	}
	o.to.line(path, lead, key, o.short(value))
}

// longField writes a field whose key is too long for a line with its value.
func (o *outline) longField(value any, path *Path, lead, key, indent string) {
	o.to.line(path, lead+"? ", "", key)
	o.element(value, path, indent+": ", indent+"  ")
}

func (o *outline) sequence(list []any, path *Path, first, indent string) {
	called := elementNames(list)
	lead := first + "- "
	for i, element := range list {
		if o.to.full() {
			o.more += o.count(element, path.Depth()+1, 0)
			continue
		}
		o.element(element, path.Element(called.of(i)), lead, indent+"  ")
		lead = indent + "- "
	}
}

// element writes a value that has no key in its line.
func (o *outline) element(value any, path *Path, lead, indent string) {
	switch value := value.(type) {
	case map[string]any:
		if !o.to.inline(value, path.Depth()) {
			o.mapping(value, path, lead, indent)
			return
		}
	case []any:
		if len(value) > 0 && !o.to.inline(value, path.Depth()) {
			o.sequence(value, path, lead, indent)
			return
		}
	case string:
		if header, ok := block(value); ok && !o.to.inline(value, path.Depth()) {
			o.to.line(path, lead, "", header)
			o.block(value, path, indent)
			return
		}
	}
	o.to.line(path, lead, "", o.short(value))
}

// short is a value on one line.
func (o *outline) short(value any) string {
	switch value := value.(type) {
	case map[string]any, []any:
		return o.to.as(value)
	}
	return scalar(value)
}

func (o *outline) block(text string, path *Path, indent string) {
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case o.to.full():
			o.more++
		case part == "":
			o.to.line(path, "", "", "")
		default:
			o.to.line(path, indent, "", part)
		}
	}
}

// countField is count for a field, whose key may have a line of its own.
func (o *outline) countField(name string, value any, depth int) int {
	const growth = 6 // a byte that is escaped
	if growth*len(name) > longestKey && len(keyText(name)) > longestKey {
		return 1 + o.count(value, depth, 0)
	}
	return o.count(value, depth, 1)
}

// count is the number of lines that a value takes. own is 1 if its key has a line.
func (o *outline) count(value any, depth, own int) int {
	if o.to.inline(value, depth) {
		return 1
	}
	n := own
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			n += o.countField(name, inner, depth+1)
		}
	case []any:
		for _, inner := range value {
			n += o.count(inner, depth+1, 0)
		}
	case string:
		if _, ok := block(value); ok {
			return 2 + strings.Count(strings.TrimSuffix(value, "\n"), "\n")
		}
	}
	return max(n, 1)
}

// block reports whether a text is written line by line, and returns the header of that
// form. Any unusual text is quoted instead.
func block(text string) (header string, ok bool) {
	inner := strings.TrimSuffix(text, "\n")
	if !strings.Contains(inner, "\n") || strings.HasPrefix(inner, "\n") || strings.HasPrefix(inner, " ") || strings.HasSuffix(inner, "\n") {
		return "", false
	}
	for _, r := range inner {
		if r != '\n' && !printable(r) {
			return "", false
		}
	}
	if inner != text {
		return "|", true
	}
	return "|-", true
}

// printable excludes characters with a meaning in YAML: tabs, separators, the byte order
// mark.
func printable(r rune) bool { return unicode.IsPrint(r) && r != unicode.ReplacementChar }

var (
	plainText   = regexp.MustCompile(`^[A-Za-z/](?:[A-Za-z0-9._/@%+-]|:[A-Za-z0-9/]| [A-Za-z0-9(./])*[)]*$`)
	plainNumber = regexp.MustCompile(`^[0-9]+(?:m|%|Ki|Mi|Gi|Ti|[.][0-9]+[.][0-9]+(?:[.][0-9]+)?)$`)
	reserved    = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
)

// plain reports whether a string needs no quotes. It is conservative.
func plain(text string) bool {
	return plainNumber.MatchString(text) || plainText.MatchString(text) && !reserved.MatchString(text)
}
