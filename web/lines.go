package web

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxLines bounds what is shown of one object; the rest is one request away, see
// as=yaml.
const maxLines = 4000

// line is one line of an object's YAML with the path of the field that it shows,
// so that a change of the field can be pointed at.
//
// Why not a YAML library: its output would have to be parsed again to learn
// which line belongs to which field.
type line struct {
	Path string `json:"path"`
	// Lead is indentation and dashes, Key has no colon.
	Lead  string `json:"lead,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

func (l line) String() string {
	switch {
	case l.Key == "":
		return l.Lead + l.Value
	case l.Value == "":
		return l.Lead + l.Key + ":"
	}
	return l.Lead + l.Key + ": " + l.Value
}

// yamlText is the whole of an object.
func yamlText(object map[string]any) string {
	var b strings.Builder
	for _, l := range yamlLines(object) {
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	return b.String()
}

func yamlLines(object map[string]any) []line {
	var w lineWriter
	w.mapping(object, "", "", "")
	return w.lines
}

type lineWriter struct{ lines []line }

// mapping writes the fields of a map. The first line begins with first, which
// may have a dash, the others with indent.
func (w *lineWriter) mapping(m map[string]any, path, first, indent string) {
	if len(m) == 0 {
		w.lines = append(w.lines, line{Path: path, Lead: first, Value: "{}"})
		return
	}
	lead := first
	for _, name := range slices.Sorted(maps.Keys(m)) {
		key := name
		if !plain(name) {
			key = quoted(name)
		}
		w.field(m[name], join(path, name), lead, key, indent)
		lead = indent
	}
}

func (w *lineWriter) field(value any, path, lead, key, indent string) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 {
			w.lines = append(w.lines, line{Path: path, Lead: lead, Key: key})
			w.mapping(value, path, indent+"  ", indent+"  ")
			return
		}
	case []any:
		if len(value) > 0 {
			w.lines = append(w.lines, line{Path: path, Lead: lead, Key: key})
			w.sequence(value, path, indent, indent)
			return
		}
	case string:
		if header, ok := block(value); ok {
			w.lines = append(w.lines, line{Path: path, Lead: lead, Key: key, Value: header})
			w.block(value, path, indent+"  ")
			return
		}
	}
	w.lines = append(w.lines, line{Path: path, Lead: lead, Key: key, Value: scalar(value)})
}

func (w *lineWriter) sequence(list []any, path, first, indent string) {
	names := elementNames(list)
	lead := first + "- "
	for i, element := range list {
		p := path + "[" + names.of(i) + "]"
		switch element := element.(type) {
		case map[string]any:
			w.mapping(element, p, lead, indent+"  ")
		case []any:
			if len(element) > 0 {
				w.sequence(element, p, lead, indent+"  ")
				break
			}
			w.lines = append(w.lines, line{Path: p, Lead: lead, Value: "[]"})
		case string:
			header, ok := block(element)
			if !ok {
				w.lines = append(w.lines, line{Path: p, Lead: lead, Value: scalar(element)})
				break
			}
			w.lines = append(w.lines, line{Path: p, Lead: lead, Value: header})
			w.block(element, p, indent+"  ")
		default:
			w.lines = append(w.lines, line{Path: p, Lead: lead, Value: scalar(element)})
		}
		lead = indent + "- "
	}
}

func (w *lineWriter) block(text, path, indent string) {
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if part == "" {
			w.lines = append(w.lines, line{Path: path})
			continue
		}
		w.lines = append(w.lines, line{Path: path, Lead: indent, Value: part})
	}
}

// block says whether a text is written line by line, and how that begins.
// Anything unusual is quoted instead.
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

// printable leaves out what YAML gives a meaning: tabs, separators, the mark of
// byte order.
func printable(r rune) bool { return unicode.IsPrint(r) && r != unicode.ReplacementChar }

func scalar(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case string:
		if plain(value) {
			return value
		}
		return quoted(value)
	case map[string]any:
		return "{}"
	case []any:
		return "[]"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return quoted(err.Error())
	}
	return string(text)
}

// quoted is a JSON string, which is a YAML string too. Runes that only YAML
// minds are escaped.
func quoted(text string) string {
	encoded := encodeJSON(text)
	var b strings.Builder
	for _, r := range encoded {
		switch {
		case printable(r) || r == unicode.ReplacementChar:
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(`\U` + hexDigits(r, 8))
		default:
			b.WriteString(`\u` + hexDigits(r, 4))
		}
	}
	return b.String()
}

func hexDigits(r rune, width int) string {
	text := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, width-len(text))) + text
}

var (
	plainText   = regexp.MustCompile(`^[A-Za-z/](?:[A-Za-z0-9._/@%+-]|:[A-Za-z0-9/]| [A-Za-z0-9(./])*[)]*$`)
	plainNumber = regexp.MustCompile(`^[0-9]+(?:m|%|Ki|Mi|Gi|Ti|[.][0-9]+[.][0-9]+(?:[.][0-9]+)?)$`)
	reserved    = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
)

// plain says whether a string needs no quotes. It leaves out more than it must.
func plain(text string) bool {
	return plainNumber.MatchString(text) || plainText.MatchString(text) && !reserved.MatchString(text)
}
