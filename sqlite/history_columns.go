package sqlite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// Values of columns, as the log stores them, are a list of entries in the order of the
// columns' numbers: the number with the kind of the value, and the value. A base has all
// that are not NULL; a state has those that differ from its base's, NULL included. Equal
// values have equal bytes.
//
// Why not a row for each change of a value: a status update changes three or four, and each
// was a row in a B-tree of its own, in pages that nothing else of the update touches.
const (
	nullValue = iota
	wholeValue
	realValue
	textValue
	// kindBits is how many bits of an entry's first number the kind takes.
	kindBits = 2
)

func appendEntry(buf []byte, number, kind int) []byte {
	return binary.AppendUvarint(buf, uint64(number)<<kindBits|uint64(kind))
}

// appendValue adds a value that is not NULL.
func appendValue(buf []byte, number int, v any) []byte {
	switch v := v.(type) {
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		return binary.AppendVarint(appendEntry(buf, number, wholeValue), n)
	case int:
		return binary.AppendVarint(appendEntry(buf, number, wholeValue), int64(v))
	case int64:
		return binary.AppendVarint(appendEntry(buf, number, wholeValue), v)
	case float64:
		if math.IsNaN(v) { // SQLite has NULL for it
			return buf
		}
		return binary.LittleEndian.AppendUint64(appendEntry(buf, number, realValue), math.Float64bits(v))
	case string:
		buf = binary.AppendUvarint(appendEntry(buf, number, textValue), uint64(len(v)))
		return append(buf, v...)
	case JSON:
		return appendText(buf, number, v)
	case Text:
		return appendText(buf, number, v)
	case []byte:
		return appendText(buf, number, v) // no column has bytes
	}
	return buf
}

func appendText(buf []byte, number int, text []byte) []byte {
	buf = binary.AppendUvarint(appendEntry(buf, number, textValue), uint64(len(text)))
	return append(buf, text...)
}

// loggedValue is an entry of a list of values.
type loggedValue struct {
	number, kind int
	// value is the text, or the bytes of the number; entry is all of it.
	value, entry []byte
}

// nextValue splits off the first entry of a list. ok is false at the end, and at a damaged
// entry.
func nextValue(list []byte) (v loggedValue, rest []byte, ok bool) {
	head, n := binary.Uvarint(list)
	if n <= 0 || head>>kindBits > math.MaxInt32 {
		return v, nil, false
	}
	v.number, v.kind = int(head>>kindBits), int(head&(1<<kindBits-1))
	size := uint64(0)
	switch v.kind {
	case wholeValue:
		_, width := binary.Varint(list[n:])
		if width <= 0 {
			return v, nil, false
		}
		size = uint64(width)
	case realValue:
		size = 8
	case textValue:
		length, width := binary.Uvarint(list[n:])
		if width <= 0 {
			return v, nil, false
		}
		n, size = n+width, length
	}
	if size > uint64(len(list)-n) {
		return v, nil, false
	}
	end := n + int(size)
	v.value, v.entry = list[n:end], list[:end]
	return v, list[end:], true
}

// plain is the value as SQLite returns it.
func (v loggedValue) plain() any {
	switch v.kind {
	case wholeValue:
		n, _ := binary.Varint(v.value)
		return n
	case realValue:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.value))
	case textValue:
		return string(v.value)
	}
	return nil
}

// differentValues adds the entries of a state's values that differ from the base's.
func differentValues(buf, base, state []byte) []byte {
	if bytes.Equal(base, state) {
		return buf
	}
	b, base, more := nextValue(base)
	s, state, left := nextValue(state)
	for more || left {
		switch {
		case !left || more && b.number < s.number:
			buf = appendEntry(buf, b.number, nullValue)
			b, base, more = nextValue(base)
		case !more || s.number < b.number:
			buf = append(buf, s.entry...)
			s, state, left = nextValue(state)
		default:
			if !bytes.Equal(b.entry, s.entry) {
				buf = append(buf, s.entry...)
			}
			b, base, more = nextValue(base)
			s, state, left = nextValue(state)
		}
	}
	return buf
}

// findValue finds the value of a column in the first list that has it.
func findValue(number int, lists ...[]byte) (loggedValue, bool) {
	for _, list := range lists {
		for v, rest, ok := nextValue(list); ok && v.number <= number; v, rest, ok = nextValue(rest) {
			if v.number == number {
				return v, true
			}
		}
	}
	return loggedValue{}, false
}

// valueFunction is the function tarn_value: the value of a column by its number, the values
// of a state and those of its base.
func valueFunction(ctx sqlite3.Context, args ...sqlite3.Value) {
	v, _ := findValue(args[0].Int(), args[1].RawBlob(), args[2].RawBlob())
	switch v.kind {
	case wholeValue:
		n, _ := binary.Varint(v.value)
		ctx.ResultInt64(n)
	case realValue:
		ctx.ResultFloat(math.Float64frombits(binary.LittleEndian.Uint64(v.value)))
	case textValue:
		ctx.ResultRawText(v.value)
	}
}

// columnValue is the SQL expression of a column that is kept by value; s is the state and b
// its base.
func columnValue(number int) string { return fmt.Sprintf("tarn_value(%d, s.cols, b.cols)", number) }

// keptColumn is a column of a row that is kept by value: its place in the row, and its
// number.
type keptColumn struct{ place, number int }

// keptColumns are those of a table, in the order of their numbers.
func keptColumns(numbers []int) (all []keptColumn) {
	for place, number := range numbers {
		if number > 0 {
			all = append(all, keptColumn{place, number})
		}
	}
	slices.SortFunc(all, func(a, b keptColumn) int { return a.number - b.number })
	return all
}

// indexedParts are the parts of a row by the numbers of their columns; nil if the values of
// some are not kept.
func indexedParts(t *prepared, numbers []int, columns int) []rowParts {
	if t == nil {
		return nil
	}
	parts := make([]rowParts, columns)
	parts[0] = labelsPart
	for n, place := range t.finding {
		if numbers[place] <= 0 {
			return nil
		}
		parts[numbers[place]] = part(n)
	}
	return parts
}

// valuesOf are all values of a row. They are valid until the next call.
func (w *logWrite) valuesOf(row *Row) []byte {
	if w.c.table == nil || row == nil {
		return nil
	}
	w.values = appendValue(w.values[:0], 0, row.labelsJSON())
	for _, c := range w.kept {
		w.values = appendValue(w.values, c.number, row.Values[c.place])
	}
	return w.values
}
