package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// unit is all rows of one object: its own row, and its rows for SQL. Damage to one part
// counts for the whole unit: SQL must show what the object contains.
type unit struct {
	id    int64
	key   tarn.Key
	sum   Sum
	found int64
	parts []byte
	body  []byte

	// values holds the row for SQL without its id and key: its labels come first, its sum
	// last. labels holds the values in the table of labels.
	values []any
	labels map[string]string
	wide   []wideUnit
}

// wideUnit is the value of a wide column.
type wideUnit struct {
	value any
	sum   Sum
	// shared holds id and sum of a value in a shared column, words the texts that fill
	// its holes.
	shared sharedUnit
	words  []any
}

// sharedUnit is a value that rows share.
type sharedUnit struct {
	id  int64
	sum []byte
	err error
}

// unitReader reads the units of a collection.
type unitReader struct {
	reader
	row    collectionRow
	layout layout
	packer *packer
	sums   rowSums
	// known are the shared values that have been checked, by column and id.
	known map[string]map[int64]sharedUnit
}

func newUnitReader(conn *sqlite3.Conn, keys *fileKeys, row collectionRow) (*unitReader, error) {
	r := &unitReader{
		reader: reader{conn: conn, stmts: map[string]*sqlite3.Stmt{}}, row: row, layout: layoutOf(row), packer: &packer{owner: row.name, keys: keys},
		sums: rowSums{keys.sums, row.name}, known: map[string]map[int64]sharedUnit{},
	}
	dictionary, err := r.packer.readDictionary(conn, row.id)
	if err == nil {
		err = r.packer.use(dictionary)
	}
	return r, err
}

// all calls each for every unit that can be found, with its defect.
//
// Where rows cannot be read, it skips ids in growing steps: a damaged page has rows of
// some ids, and the rows before and after it are good.
func (r *unitReader) all(each func(u *unit, wrong error) error) (unread error) {
	const furthest = 1 << 50
	next, step := int64(-1<<62), int64(1)
	for next < furthest {
		var failed error
		err := r.query(fmt.Sprintf("SELECT id, key, sum, found, parts, body FROM tarn_objects_%d WHERE id >= ? ORDER BY id", r.row.id), func(row *sqlite3.Stmt) error {
			u := &unit{
				id: row.ColumnInt64(0), key: tarn.Key(row.ColumnText(1)), sum: sumOf(row.ColumnRawBlob(2)), found: row.ColumnInt64(3),
				parts: row.ColumnBlob(4, nil), body: row.ColumnBlob(5, nil),
			}
			next, step = u.id+1, 1
			wrong := r.check(u)
			if errors.Is(wrong, sqlite3.INTERRUPT) {
				return wrong
			}
			failed = each(u, wrong)
			return failed
		}, next)
		switch {
		case failed != nil:
			return failed
		case err == nil:
			return unread
		case !unreadable(err):
			return err
		}
		unread = fmt.Errorf("%w: rows cannot be read: %w", errBadRow, err)
		next, step = max(next, 0)+step, 2*step
	}
	return unread
}

// check reads the rest of a unit, and returns its defect.
func (r *unitReader) check(u *unit) error {
	if _, err := r.packer.unpackBase(u.key, u.sum, nil, u.body, nil); err != nil {
		return err
	}
	if !r.layout.shown {
		return nil
	}
	if err := r.readRow(u); err != nil {
		return err
	}
	if err := r.readLabels(u); err != nil {
		return err
	}
	if len(u.parts) != len(r.layout.wide)*len(Sum{}) {
		return fmt.Errorf("%w: the sums of its wide columns", errBadRow)
	}
	for i, column := range r.layout.wide {
		part := sumOf(u.parts[i*len(Sum{}):])
		read := r.readOwn
		if column.shared {
			read = r.readShared
		}
		w, err := read(u, column.name, part)
		if err != nil {
			return err
		}
		u.wide = append(u.wide, w)
	}
	return nil
}

func (r *unitReader) readRow(u *unit) error {
	key, found := "", false
	err := r.query(fmt.Sprintf("SELECT * FROM %s WHERE id=?", quote(rowsTable(r.row.id))), func(row *sqlite3.Stmt) error {
		key, found = row.ColumnText(1), true
		for i := 2; i < row.ColumnCount(); i++ {
			u.values = append(u.values, stored(row, i))
		}
		return nil
	}, u.id)
	n := len(u.values)
	switch {
	case err != nil:
		return err
	case !found || n < 2:
		return fmt.Errorf("%w: its row for SQL is missing", errBadRow)
	}
	sum, _ := u.values[n-1].([]byte)
	if key != string(u.key) || r.sums.row(u.key, u.sum, u.values[0], u.values[1:n-1]) != sumOf(sum) {
		return fmt.Errorf("%w: its row for SQL", errBadRow)
	}
	return nil
}

// readLabels compares the table of labels with those of the row, which have a sum.
func (r *unitReader) readLabels(u *unit) error {
	u.labels = map[string]string{}
	err := r.query(fmt.Sprintf("SELECT name, value FROM %s WHERE id=?", quote(labelsTable(r.row.id))), func(row *sqlite3.Stmt) error {
		u.labels[row.ColumnText(0)] = row.ColumnText(1)
		return nil
	}, u.id)
	if err != nil {
		return err
	}
	want := map[string]string{}
	if text, ok := u.values[0].(string); ok {
		err = json.Unmarshal([]byte(text), &want)
	}
	if err != nil || !maps.Equal(want, u.labels) {
		return fmt.Errorf("%w: its labels for SQL", errBadRow)
	}
	return nil
}

func (r *unitReader) readOwn(u *unit, column string, part Sum) (w wideUnit, err error) {
	found := false
	err = r.query(fmt.Sprintf("SELECT value, tarn_sum FROM %s WHERE id=?", quote(wideTable(r.row.id, column))), func(row *sqlite3.Stmt) error {
		w, found = wideUnit{value: stored(row, 0), sum: sumOf(row.ColumnRawBlob(1))}, true
		return nil
	}, u.id)
	if err == nil && (!found || r.sums.wide(u.key, column, part, w.value) != w.sum) {
		err = fmt.Errorf("%w: its column %s", errBadRow, column)
	}
	return w, err
}

func (r *unitReader) readShared(u *unit, column string, part Sum) (w wideUnit, err error) {
	found, value := false, int64(0)
	err = r.query(fmt.Sprintf("SELECT * FROM %s WHERE id=?", quote(wideTable(r.row.id, column))), func(row *sqlite3.Stmt) error {
		value, found = row.ColumnInt64(1), true
		for i := 2; i < row.ColumnCount()-1; i++ {
			w.words = append(w.words, stored(row, i))
		}
		w.sum = sumOf(row.ColumnRawBlob(row.ColumnCount() - 1))
		return nil
	}, u.id)
	if err != nil {
		return w, err
	}
	if value != 0 {
		if w.shared = r.shared(column, value); w.shared.err != nil {
			return w, w.shared.err
		}
	}
	if !found || r.sums.shared(u.key, column, part, w.shared.sum, w.words) != w.sum {
		err = fmt.Errorf("%w: its column %s", errBadRow, column)
	}
	return w, err
}

// shared checks a value once for all rows that refer to it.
func (r *unitReader) shared(column string, id int64) sharedUnit {
	if known, ok := r.known[column][id]; ok {
		return known
	}
	u := sharedUnit{id: id}
	value, err := r.sharedValue(column, id, &u.sum)
	if text, _ := value.(string); err == nil && (u.sum == nil || !bytes.Equal(r.sums.value([]byte(text)), u.sum)) {
		err = fmt.Errorf("%w: a value of its column %s that others have too", errBadRow, column)
	}
	u.err = err
	if r.known[column] == nil {
		r.known[column] = map[int64]sharedUnit{}
	}
	r.known[column][id] = u
	return u
}

func (r *unitReader) sharedValue(column string, id int64, sum *[]byte) (value any, err error) {
	err = r.query(fmt.Sprintf("SELECT value, sum FROM %s WHERE id=?", quote(valuesTable(r.row.id, column))), func(row *sqlite3.Stmt) error {
		value, *sum = stored(row, 0), row.ColumnBlob(1, nil)
		return nil
	}, id)
	return value, err
}

// stored is a value as a column has it.
func stored(row *sqlite3.Stmt, i int) any {
	switch row.ColumnType(i) {
	case sqlite3.INTEGER:
		return row.ColumnInt64(i)
	case sqlite3.FLOAT:
		return row.ColumnFloat(i)
	case sqlite3.TEXT:
		return row.ColumnText(i)
	case sqlite3.BLOB:
		return row.ColumnBlob(i, nil)
	}
	return nil
}
