package sqlite

import (
	"hash/maphash"
	"math"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// addColumns writes the values that differ from those of the state before, and returns
// their checksum; nil if there are none.
func (w *logWrite) addColumns(seq int64, row Row) (cols []byte, err error) {
	if w.c.table == nil {
		return nil, nil
	}
	if w.values == nil {
		if err := w.readValues(); err != nil {
			return nil, err
		}
	}
	changed := changedColumns{sums: w.c.db.keys.sums}
	set := func(number int, v any) error {
		for len(w.values) <= number {
			w.values = append(w.values, 0)
		}
		v = plainValue(v)
		hash := w.hash(v)
		if hash == w.values[number] {
			return nil
		}
		w.values[number] = hash
		changed.add(number, v)
		w.bytes += 20
		if text, ok := v.(string); ok {
			w.bytes += int64(len(text))
		}
		return run(w.stmts.addColumn, noRow, w.life, int64(number), seq, v)
	}
	err = set(0, labelsJSON(row.Labels))
	for i, number := range w.numbers {
		if err == nil && number > 0 {
			err = set(number, row.Values[i])
		}
	}
	return changed.sum(), err
}

// changedColumns computes the checksum of the values that changed with a state, in the
// order of their numbers.
type changedColumns struct {
	sums   *summer
	values []changedColumn
}

type changedColumn struct {
	number int
	value  any
}

func (c *changedColumns) add(number int, v any) {
	c.values = append(c.values, changedColumn{number, v})
}

// include adds values of states before, in their order, of columns that did not change
// again.
func (c *changedColumns) include(before []changedColumn) {
	has := map[int]bool{}
	for _, v := range c.values {
		has[v.number] = true
	}
	for i := len(before) - 1; i >= 0; i-- {
		if v := before[i]; !has[v.number] {
			has[v.number] = true
			c.values = append(c.values, v)
		}
	}
}

func (c *changedColumns) sum() []byte {
	if len(c.values) == 0 {
		return nil
	}
	slices.SortFunc(c.values, func(a, b changedColumn) int { return a.number - b.number })
	sum := c.sums.sum(func(h *sumHash) {
		h.text("columns")
		for _, v := range c.values {
			h.int(int64(v.number))
			h.value(v.value)
		}
	})
	return sum[:8]
}

// readValues reads the values before the first state of this transaction: from the content,
// or, if that was dropped, from the log itself.
func (w *logWrite) readValues() error {
	w.values = make([]uint64, len(w.columns))
	found := false
	err := run(w.stmts.row, func(row *sqlite3.Stmt) error {
		w.values[0], found = w.hash(stored(row, 0)), true
		at := 1
		for _, number := range w.numbers {
			if number > 0 {
				w.values[number] = w.hash(stored(row, at))
				at++
			}
		}
		return nil
	}, string(w.key))
	if err != nil || found {
		return err
	}
	return query(w.conn, "SELECT col, value FROM "+logColumnTable(w.c.id)+" WHERE life=? ORDER BY col, seq", func(row *sqlite3.Stmt) error {
		if n := row.ColumnInt64(0); n < int64(len(w.values)) {
			w.values[n] = w.hash(stored(row, 1))
		}
		return nil
	}, w.life)
}

// hash is a hash of a value, 0 for NULL. Its seed is the process's own: nobody can make two
// values with the same.
func (l *logbook) hash(v any) uint64 {
	if v == nil {
		return 0
	}
	return maphash.Comparable(l.seed, v) | 1
}

// plainValue is a value as SQLite returns it.
func plainValue(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case int:
		return int64(v)
	case JSON:
		return string(v)
	case Text:
		return string(v)
	case []byte:
		return string(v) // no column has bytes
	case float64:
		if math.IsNaN(v) {
			return nil
		}
	}
	return v
}
