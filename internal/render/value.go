package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut is the beginning of a text that is longer than most bytes, with … at its end.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// CutNote is Cut with a note of the full length.
func CutNote(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s (cut: it has %d bytes in all)", Cut(text, most), len(text))
}

// Brief is a value on one line: a string unquoted, anything else as JSON. It ends with …
// if it has more than most bytes. It reads no more of the value than it shows.
func Brief(value any, most int) string {
	text, ok := value.(string)
	if ok {
		text = Cut(text, most)
		if text == "" || strings.ContainsAny(text, "\n\t") {
			text = quoted(text)
		}
		return Cut(text, most)
	}
	f := flow{most: most + 1}
	f.value(value)
	return Cut(f.String(), most)
}

// flow writes a value on one line, in YAML's flow style, which is also JSON unless a
// key is very long. If most is not 0, it stops soon after that many bytes.
type flow struct {
	strings.Builder
	most int
}

func (f *flow) full() bool { return f.most > 0 && f.Len() >= f.most }

func (f *flow) value(value any) {
	switch value := value.(type) {
	case map[string]any:
		f.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(value)) {
			if f.full() {
				return
			}
			if i > 0 {
				f.WriteByte(',')
			}
			key := f.quoted(name)
			if len(key) > longestKey {
				key = "? " + key + " "
			}
			f.WriteString(key)
			f.WriteByte(':')
			f.value(value[name])
		}
		f.WriteByte('}')
	case []any:
		f.WriteByte('[')
		for i, element := range value {
			if f.full() {
				return
			}
			if i > 0 {
				f.WriteByte(',')
			}
			f.value(element)
		}
		f.WriteByte(']')
	case string:
		f.WriteString(f.quoted(value))
	default:
		f.WriteString(scalar(value))
	}
}

// quoted omits what would be cut anyway.
func (f *flow) quoted(text string) string {
	if f.most > 0 {
		text = Cut(text, f.most)
	}
	return quoted(text)
}

// scalar is a value that has no parts.
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

// quoted is a JSON string, which is a YAML string too. It also escapes runes that are
// special only in YAML.
func quoted(text string) string {
	var b strings.Builder
	for _, r := range encodeString(text) {
		switch {
		case printable(r) || r == unicode.ReplacementChar:
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// encodeString does not escape < and >: the output is never HTML.
func encodeString(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
