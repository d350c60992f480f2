package sqlite

import (
	"bufio"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Write writes the result as "table", "json" or "csv".
func (r *Result) Write(w io.Writer, format string) error {
	switch format {
	case "table", "":
		return r.WriteTable(w)
	case "json":
		return r.WriteJSON(w)
	case "csv":
		return r.WriteCSV(w)
	}
	return fmt.Errorf("there is no format %q: take table, json or csv", format)
}

// widest is how many characters of a value a table shows.
const widest = 80

// WriteTable writes the result for people: columns side by side, long values cut.
func (r *Result) WriteTable(w io.Writer) error {
	lines := [][]string{r.Columns}
	for _, row := range r.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = cell(v)
		}
		lines = append(lines, cells)
	}
	widths := make([]int, len(r.Columns))
	for _, line := range lines {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	b := bufio.NewWriter(w)
	for n, line := range lines {
		var s strings.Builder
		for i, c := range line {
			if n == 0 {
				c = strings.ToUpper(c)
			}
			s.WriteString(c)
			s.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+3))
		}
		fmt.Fprintln(b, strings.TrimRight(s.String(), " "))
	}
	if r.Cut {
		fmt.Fprintf(b, "(there is more than these %d rows)\n", len(r.Rows))
	}
	return b.Flush()
}

// cell is a value on one line. What would move the cursor of a terminal is not
// shown as it is: values come from whoever may write objects.
func cell(v any) string {
	s := text(v)
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
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
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	}
	return fmt.Sprint(v)
}

// WriteJSON writes an array with an object for each row, in the order of columns.
func (r *Result) WriteJSON(w io.Writer) error {
	names := make([][]byte, len(r.Columns))
	for i, c := range r.Columns {
		name, err := json.Marshal(c)
		if err != nil {
			return err
		}
		names[i] = name
	}
	b := bufio.NewWriter(w)
	b.WriteByte('[')
	for n, row := range r.Rows {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n{")
		for i, v := range row {
			if i > 0 {
				b.WriteString(", ")
			}
			raw, err := json.Marshal(v)
			if err != nil { // infinity
				raw = []byte("null")
			}
			b.Write(names[i])
			b.WriteString(": ")
			b.Write(raw)
		}
		b.WriteByte('}')
	}
	b.WriteString("\n]\n")
	return b.Flush()
}

// WriteCSV writes a line of names and one for each row.
func (r *Result) WriteCSV(w io.Writer) error {
	b := bufio.NewWriter(w)
	c := csv.NewWriter(b)
	if err := c.Write(r.Columns); err != nil {
		return err
	}
	for _, row := range r.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = text(v)
		}
		if len(cells) == 1 && cells[0] == "" {
			// An empty line would be no row to who reads it.
			c.Flush()
			b.WriteString("\"\"\n")
			continue
		}
		if err := c.Write(cells); err != nil {
			return err
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return err
	}
	return b.Flush()
}
