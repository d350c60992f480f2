package render

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteYAML writes the whole of an object as YAML.
func WriteYAML(to io.Writer, object map[string]any) error {
	w := &wholeText{Writer: bufio.NewWriter(to), indent: freeIndent}
	o := outline{to: w}
	o.mapping(object, nil, "", "")
	return w.Flush()
}

// wholeText writes every line. The error of a write is kept by the bufio.Writer.
type wholeText struct {
	*bufio.Writer
	// indent is the number of bytes of indentation left.
	indent int
}

func (w *wholeText) full() bool { return false }

// inline estimates the indentation that a map or list needs before it begins: a block
// that was begun line by line cannot switch to one line.
func (w *wholeText) inline(value any, depth int) bool {
	lines, content := 0, 0
	switch value := value.(type) {
	case map[string]any:
		lines = len(value)
		for name, inner := range value {
			content += len(name) + size(inner)
		}
	case []any:
		lines = len(value)
		for _, inner := range value {
			content += size(inner)
		}
	case string:
		lines, content = strings.Count(value, "\n"), len(value)
	}
	return depth >= MaxDepth || w.indent+indentPerByte*content < 2*depth*lines
}

// size is a lower bound for the bytes of a value on its own line.
func size(value any) int {
	text, _ := value.(string)
	return 1 + len(text)
}

func (w *wholeText) as(value any) string {
	var f flow
	f.value(value)
	return f.String()
}

func (w *wholeText) line(_ *Path, lead, key, value string) {
	w.indent += indentPerByte*(len(key)+len(value)) - len(lead)
	w.WriteString(lineText(lead, key, value))
	w.WriteByte('\n')
}

// Fits reports whether the indented text of a value stays within the bounds of this
// package, so that any printer may print it. It assumes the four spaces of kubectl's
// JSON.
func Fits(value any) bool {
	indent := freeIndent
	return fits(value, 0, &indent)
}

func fits(value any, depth int, indent *int) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			*indent += indentPerByte * len(name)
			if depth >= MaxDepth || !fits(inner, depth+1, indent) {
				return false
			}
		}
	case []any:
		for _, inner := range value {
			if depth >= MaxDepth || !fits(inner, depth+1, indent) {
				return false
			}
		}
	case string:
		*indent += indentPerByte * len(value)
	}
	*indent += indentPerByte - jsonIndent*depth
	return *indent >= 0
}

const jsonIndent = 4

// WriteJSON writes the whole of a value as indented JSON.
func WriteJSON(to io.Writer, value any) error {
	w := &jsonWriter{Writer: bufio.NewWriter(to), indent: freeIndent}
	if err := w.value(value, 0); err != nil {
		return err
	}
	w.WriteByte('\n')
	return w.Flush()
}

type jsonWriter struct {
	*bufio.Writer
	indent int
}

func (w *jsonWriter) value(value any, depth int) error {
	switch value := value.(type) {
	case map[string]any:
		return w.object(value, depth)
	case []any:
		return w.array(value, depth)
	}
	return w.scalar(value)
}

func (w *jsonWriter) scalar(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.indent += indentPerByte * len(text)
	_, err = w.Write(text)
	return err
}

func (w *jsonWriter) object(object map[string]any, depth int) error {
	if len(object) == 0 {
		_, err := w.WriteString("{}")
		return err
	}
	w.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(object)) {
		w.next(i, depth+1)
		if err := w.scalar(name); err != nil {
			return err
		}
		w.WriteString(": ")
		if err := w.value(object[name], depth+1); err != nil {
			return err
		}
	}
	w.line(depth)
	return w.WriteByte('}')
}

func (w *jsonWriter) array(list []any, depth int) error {
	if len(list) == 0 {
		_, err := w.WriteString("[]")
		return err
	}
	w.WriteByte('[')
	for i, element := range list {
		w.next(i, depth+1)
		if err := w.value(element, depth+1); err != nil {
			return err
		}
	}
	w.line(depth)
	return w.WriteByte(']')
}

func (w *jsonWriter) next(i, depth int) {
	if i > 0 {
		w.WriteByte(',')
	}
	w.line(depth)
}

// line begins a new line, unless the rest belongs on one line.
func (w *jsonWriter) line(depth int) {
	if depth > MaxDepth || w.indent <= 0 {
		return
	}
	w.indent -= jsonIndent * depth
	w.WriteByte('\n')
	w.WriteString(strings.Repeat(" ", jsonIndent*depth))
}
