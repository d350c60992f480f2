package sqlite

import (
	"bytes"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// MaxWords is the largest number of words per row of a shared column.
const MaxWords = 3

// sharedColumn is a wide column whose values are stored once for all rows that have
// them. In a stored value, the words in which rows differ are holes; the view fills them
// with each row's own. So the specs of a thousand replicas of a pod, each with its node,
// are one value.
//
// A hole is a control character, which JSON has only in escapes. A value is deleted with
// its last reference: references are indexed by value, so there is no counter.
//
// Why not compress the values instead: then other tools could not read them.
type sharedColumn struct {
	at   int
	name string
	sums rowSums
	// find and add read and write values, by their checksum; refer, forget and look
	// handle a row's reference. sweep deletes a value without references.
	find, add, refer, forget, look, sweep *sqlite3.Stmt
}

func valuesTable(id int64, column string) string { return wideTable(id, column) + "_values" }

// hole is the placeholder of the nth word, in a value and in SQL.
func hole(n int) (text, sql string) { return string(rune(1 + n)), fmt.Sprintf("char(%d)", 1+n) }

func sharedTables(id int64, c Column) []string {
	words := ""
	for n := range MaxWords {
		words += fmt.Sprintf(", word%d TEXT", n)
	}
	wide := wideTable(id, c.Name)
	return []string{
		fmt.Sprintf("CREATE TABLE %s (id INTEGER PRIMARY KEY, value INTEGER%s, tarn_sum BLOB NOT NULL)", quote(wide), words),
		fmt.Sprintf("CREATE INDEX %s ON %s (value)", quote(wide+"_by_value"), quote(wide)),
		fmt.Sprintf("CREATE TABLE %s (id INTEGER PRIMARY KEY, sum BLOB NOT NULL UNIQUE, value TEXT)", quote(valuesTable(id, c.Name))),
	}
}

// sharedValue is the SQL expression of a row's value.
func sharedValue(id int64, column string) string {
	value := "v.value"
	for n := range MaxWords {
		_, hole := hole(n)
		value = fmt.Sprintf("CASE WHEN w.word%d IS NULL THEN %s ELSE replace(%s, %s, w.word%d) END", n, value, value, hole, n)
	}
	return fmt.Sprintf("(SELECT %s FROM %s w JOIN %s v ON v.id = w.value WHERE w.id = r.id)",
		value, quote(wideTable(id, column)), quote(valuesTable(id, column)))
}

func newSharedColumn(id int64, at int, name string, sums rowSums, prepare func(sql string) *sqlite3.Stmt) *sharedColumn {
	wide, values := quote(wideTable(id, name)), quote(valuesTable(id, name))
	columns, places := "id, value, tarn_sum", "?1, ?2, ?3"
	for n := range MaxWords {
		columns, places = fmt.Sprintf("%s, word%d", columns, n), fmt.Sprintf("%s, ?%d", places, n+4)
	}
	return &sharedColumn{
		at: at, name: name, sums: sums,
		find:   prepare(fmt.Sprintf("SELECT id FROM %s WHERE sum=?1", values)),
		add:    prepare(fmt.Sprintf("INSERT INTO %s (sum, value) VALUES (?1, ?2)", values)),
		refer:  prepare(fmt.Sprintf("REPLACE INTO %s (%s) VALUES (%s)", wide, columns, places)),
		forget: prepare(removeFrom(wideTable(id, name))),
		look:   prepare(fmt.Sprintf("SELECT value FROM %s WHERE id=?1", wide)),
		sweep:  prepare(fmt.Sprintf("DELETE FROM %s WHERE id=?1 AND NOT EXISTS (SELECT 1 FROM %s WHERE value=?1)", values, wide)),
	}
}

func (c *sharedColumn) place() int { return c.at }

func (c *sharedColumn) all() []*sqlite3.Stmt {
	return []*sqlite3.Stmt{c.find, c.add, c.refer, c.forget, c.look, c.sweep}
}

func (c *sharedColumn) put(conn *sqlite3.Conn, id int64, key tarn.Key, part WideValue, value any) error {
	before, err := c.number(c.look, id)
	if err != nil {
		return err
	}
	args := make([]any, 3+MaxWords)
	args[0] = id
	var sum []byte
	if raw, ok := value.(JSON); ok && !hasHoles(raw) {
		raw, own := makeHoles(raw, part.Words)
		copy(args[3:], own)
		sum = c.sums.value(raw)
		if args[1], err = c.keep(conn, raw, sum); err != nil {
			return err
		}
	}
	args[2] = c.sums.shared(key, c.name, part.Sum, sum, args[3:])
	if err := run(c.refer, noRow, args...); err != nil || before == 0 || args[1] == before {
		return err
	}
	return run(c.sweep, noRow, before)
}

func (c *sharedColumn) remove(id int64) error {
	before, err := c.number(c.look, id)
	if err == nil {
		err = run(c.forget, noRow, id)
	}
	if err != nil || before == 0 {
		return err
	}
	return run(c.sweep, noRow, before)
}

// keep finds a value, or adds it.
func (c *sharedColumn) keep(conn *sqlite3.Conn, raw JSON, sum []byte) (int64, error) {
	known, err := c.number(c.find, sum)
	if err != nil || known != 0 {
		return known, err
	}
	if err := run(c.add, noRow, sum, raw); err != nil {
		return 0, err
	}
	return conn.LastInsertRowID(), nil
}

// number is the first column of the first row, 0 without one.
func (c *sharedColumn) number(stmt *sqlite3.Stmt, arg any) (n int64, err error) {
	err = run(stmt, func(row *sqlite3.Stmt) error { n = row.ColumnInt64(0); return nil }, arg)
	return n, err
}

func hasHoles(raw JSON) bool {
	for n := range MaxWords {
		if text, _ := hole(n); bytes.Contains(raw, []byte(text)) {
			return true
		}
	}
	return false
}

// makeHoles replaces words by holes, and returns the words that it found, as arguments
// of the statement.
func makeHoles(raw JSON, words []string) (JSON, []any) {
	own := make([]any, MaxWords)
	for n, word := range words[:min(len(words), MaxWords)] {
		if text, _ := hole(n); word != "" && !hasHoles(JSON(word)) && bytes.Contains(raw, []byte(word)) {
			raw, own[n] = bytes.ReplaceAll(raw, []byte(word), []byte(text)), word
		}
	}
	return raw, own
}
