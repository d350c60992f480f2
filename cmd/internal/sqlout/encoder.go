package sqlout

import (
	"bufio"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tarnproject/tarn/sqlite"
)

// Formats are the names that [NewEncoder] knows.
var Formats = []string{"table", "json", "csv"}

// An Encoder writes an answer while it is computed. End writes what follows the last
// row.
type Encoder interface {
	sqlite.RowWriter
	End(sqlite.Summary) error
}

// NewEncoder writes to w as "table", which is for people and shows long values cut,
// as "json", an array with an object for each row, or as "csv", with a line of names
// first. Nothing is written before the first row or the end.
func NewEncoder(w io.Writer, format string) (Encoder, error) {
	b := bufio.NewWriterSize(w, 32<<10)
	switch format {
	case "table", "":
		return &tableEncoder{w: b}, nil
	case "json":
		return &jsonEncoder{w: b}, nil
	case "csv":
		return &csvEncoder{w: b, csv: csv.NewWriter(b)}, nil
	}
	return nil, fmt.Errorf("there is no format %q: take table, json or csv", format)
}

const (
	// widest is how many characters of a value a table shows.
	widest = 80
	// measured is the number of rows from which a table takes its widths, measuredBytes their
	// bytes: a wider value in a later row moves the rest of its line.
	measured, measuredBytes = 1_000, 1 << 20
)

// tableEncoder shows columns side by side. The first rows wait until the widths of the
// columns are known.
type tableEncoder struct {
	w       *bufio.Writer
	waiting [][]string
	bytes   int
	widths  []int
}

func (t *tableEncoder) Begin(head sqlite.Head) error {
	cells := make([]string, len(head.Columns))
	for i, name := range head.Columns {
		cells[i] = cell(sqlite.Text(strings.ToUpper(name)))
	}
	t.waiting = [][]string{cells}
	return nil
}

func (t *tableEncoder) Row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = cell(v)
		t.bytes += len(cells[i])
	}
	if t.widths != nil {
		return t.line(cells)
	}
	t.waiting = append(t.waiting, cells)
	if len(t.waiting) > measured || t.bytes > measuredBytes {
		return t.measure()
	}
	return nil
}

// measure writes the waiting rows.
func (t *tableEncoder) measure() error {
	t.widths = make([]int, 0)
	for _, line := range t.waiting {
		for i, c := range line {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, line := range t.waiting {
		if err := t.line(line); err != nil {
			return err
		}
	}
	t.waiting = nil
	return nil
}

func (t *tableEncoder) line(cells []string) error {
	var s strings.Builder
	for i, c := range cells {
		s.WriteString(c)
		s.WriteString(strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(c))+3))
	}
	_, err := t.w.WriteString(strings.TrimRight(s.String(), " ") + "\n")
	return err
}

func (t *tableEncoder) End(s sqlite.Summary) error {
	if t.widths == nil {
		if err := t.measure(); err != nil {
			return err
		}
	}
	if s.Cut {
		fmt.Fprintf(t.w, "(there is more than these %d rows)\n", s.Rows)
	}
	return t.w.Flush()
}

// cell is a value on one line. Control characters of terminals, and marks that change the
// direction of writing, are left out: values come from anyone who may write objects.
func cell(v any) string {
	if t, ok := v.(sqlite.Text); ok && len(t) > 4*widest {
		v = t[:4*widest] // more characters than are shown
	}
	if b, ok := v.([]byte); ok && len(b) > widest {
		v = b[:widest]
	}
	s := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text(v))
	if utf8.RuneCountInString(s) > widest {
		s = string([]rune(s)[:widest-1]) + "…"
	}
	return s
}

// text is a value as text; nothing for NULL.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, floatFormat(v), -1, 64)
	case sqlite.Text:
		return string(v)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	}
	return fmt.Sprint(v)
}

// jsonEncoder writes an array with an object for each row, in the order of columns.
type jsonEncoder struct {
	w     *bufio.Writer
	names [][]byte
	rows  int
}

func (j *jsonEncoder) Begin(head sqlite.Head) error {
	for _, name := range head.Columns {
		j.names = append(j.names, jsonName(name))
	}
	return j.w.WriteByte('[')
}

func (j *jsonEncoder) Row(values []any) error {
	if j.rows++; j.rows > 1 {
		j.w.WriteByte(',')
	}
	j.w.WriteString("\n{")
	for i, v := range values {
		if i > 0 {
			j.w.WriteString(", ")
		}
		j.w.Write(j.names[i])
		if err := WriteJSON(j.w, v); err != nil {
			return err
		}
	}
	return j.w.WriteByte('}') // also returns earlier errors
}

func (j *jsonEncoder) End(sqlite.Summary) error {
	j.w.WriteString("\n]\n")
	return j.w.Flush()
}

// csvEncoder writes a line of names and one for each row.
type csvEncoder struct {
	w   *bufio.Writer
	csv *csv.Writer
}

func (c *csvEncoder) Begin(head sqlite.Head) error { return c.csv.Write(head.Columns) }

func (c *csvEncoder) Row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = text(v)
	}
	if len(cells) == 1 && cells[0] == "" {
		// A reader would skip an empty line.
		c.csv.Flush()
		_, err := c.w.WriteString("\"\"\n")
		return err
	}
	return c.csv.Write(cells)
}

func (c *csvEncoder) End(sqlite.Summary) error {
	c.csv.Flush()
	if err := c.csv.Error(); err != nil {
		return err
	}
	return c.w.Flush()
}
