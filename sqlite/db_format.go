package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

const (
	// applicationID is in the file's header, so that tools can identify it: "Tarn" in
	// ASCII.
	applicationID = 0x5461726e
	// format is the layout of the tables. It grows when an older Tarn would misread
	// them, or this one an older file.
	format = 12
)

var (
	// errOutdated says that a file is undamaged but cannot be used.
	errOutdated = errors.New("the file cannot be used any more")
	// errOlderFormat says that a file needs what [migrate] changes.
	errOlderFormat = errors.New("it has an older format")
	// ErrNewerFormat says that a later version of Tarn wrote the file.
	ErrNewerFormat = errors.New("written by a newer Tarn")
	// ErrKey says that a directory cannot be read with the given key, or without one.
	ErrKey = errors.New("the key does not fit")
	// errSchema says that tables differ from those that this package made.
	errSchema = errors.New("another program changed the tables")
)

// tables holds the tables that exist once per file; each collection has its own too.
//
// tarn_format repeats the format, and every later format keeps that; it has the salt
// from which the file's keys are derived, and a proof that detects a wrong key.
//
// tarn_collections has one row for each collection: what it is a copy of, and its state.
// The version is written in the same transaction as the objects. whole is 0 if something
// could not be written: a start must not use the content. It is 2 if all content is
// written, but the copy could not take everything that the source sent: a start must not
// resume from the version. sum is the sum over all rows, which detects a missing or
// exchanged page even if each row is good. positions has the position of each section, in
// JSON; label is the caller's. proof is a checksum of the row itself.
//
// tarn_dictionaries has the bytes against which objects are compressed, with a checksum: the
// checksums of objects are of their compressed bytes.
var tables = []string{
	`CREATE TABLE tarn_format (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID`,
	`CREATE TABLE tarn_collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, identity TEXT NOT NULL, version TEXT NOT NULL, heard_ms INTEGER NOT NULL, objects INTEGER NOT NULL, whole INTEGER NOT NULL, sum INTEGER NOT NULL, positions TEXT NOT NULL, label TEXT NOT NULL, proof BLOB NOT NULL)`,
	`CREATE TABLE tarn_dictionaries (id INTEGER PRIMARY KEY, value BLOB NOT NULL, sum BLOB)`,
	`CREATE TABLE tarn_logs (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, shown INTEGER NOT NULL, horizon INTEGER NOT NULL, horizon_ms INTEGER NOT NULL, thinned INTEGER NOT NULL, states INTEGER NOT NULL, lives INTEGER NOT NULL, sum INTEGER NOT NULL, pruned INTEGER NOT NULL, thinning INTEGER NOT NULL, every_ms INTEGER NOT NULL, epochs INTEGER NOT NULL, epoch TEXT NOT NULL, columns TEXT NOT NULL, proof BLOB NOT NULL)`,
	`CREATE TABLE tarn_log_gaps (collection INTEGER NOT NULL, seq INTEGER NOT NULL, section TEXT NOT NULL, from_version TEXT NOT NULL, to_version TEXT NOT NULL, cause TEXT NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL, sum BLOB NOT NULL, PRIMARY KEY (collection, seq)) WITHOUT ROWID`,
	`CREATE VIEW tarn_gaps AS SELECT c.name AS collection, g.section AS section, nullif(g.from_version, '') AS from_version, nullif(g.to_version, '') AS to_version, g.cause AS cause, g.from_ms / 1000.0 AS since, g.to_ms / 1000.0 AS until FROM tarn_log_gaps g JOIN tarn_collections c ON c.id = g.collection`,
	bundlesDDL,
}

// oldTables are the tables of the formats that are migrated. Format 4 had no histories, the
// gaps of format 5 had empty texts for versions that are not known, the moments of format 6
// had no checksums, in format 7 values of columns had a table of their own, the objects of
// format 8 have no CRC (they are read as they are, and get one when they change), up to
// format 9 states were in the order of lives, format 10 had no bundles, and up to format 11
// dictionaries had no checksums.
var oldTables = map[int64][]string{
	4:  tablesBefore12[:3],
	6:  tablesBefore10,
	7:  tablesBefore10,
	8:  tablesBefore10,
	9:  tablesBefore10,
	10: tablesBefore12[:6],
	11: tablesBefore12,
	5:  append(slices.Clone(tablesBefore10[:5]), `CREATE VIEW tarn_gaps AS SELECT c.name AS collection, g.section AS section, g.from_version AS from_version, g.to_version AS to_version, g.cause AS cause, g.from_ms / 1000.0 AS since, g.to_ms / 1000.0 AS until FROM tarn_log_gaps g JOIN tarn_collections c ON c.id = g.collection`),
}

var (
	tablesBefore10 = append(append(slices.Clone(tablesBefore12[:3]), oldLogsDDL), tables[4:6]...)
	tablesBefore12 = append([]string{tables[0], tables[1], `CREATE TABLE tarn_dictionaries (id INTEGER PRIMARY KEY, value BLOB NOT NULL)`}, tables[3:]...)
)

// migrations are what makes the tables of the present format of each of them.
var migrations = map[int64]string{
	4:  strings.Join(tables[3:], ";"),
	5:  "DROP VIEW tarn_gaps;" + tables[5] + ";" + bundlesDDL,
	6:  bundlesDDL,
	7:  bundlesDDL,
	8:  bundlesDDL,
	9:  bundlesDDL,
	10: bundlesDDL,
	11: "",
}

// keyProof is stored encrypted, to detect another key later.
const keyProof = "the key that this file was written with"

var errForeign = errors.New("it is a database of something else")

// checkFormat checks whether a file can be used, before anything in it is changed. An
// empty file can.
func (db *DB) checkFormat(conn *sqlite3.Conn) (empty bool, err error) {
	content, err := number(conn, "SELECT count(*) FROM sqlite_schema")
	if err != nil || content == 0 {
		return err == nil, err
	}
	var keys *fileKeys
	if err = migrate(conn, db.opts.Key, &progress{db: db}); err == nil {
		keys, err = readFormat(conn, db.opts.Key)
	}
	switch {
	case errors.Is(err, errForeign) || errors.Is(err, ErrNewerFormat):
		return false, fmt.Errorf("%w, or name another directory", err)
	case errors.Is(err, ErrKey) || errors.Is(err, errOlderFormat):
		return false, fmt.Errorf("%w: %w", errOutdated, err)
	case err != nil:
		return false, err
	case reserved(conn) != 0:
		// Up to format 3 Tarn adds checksums to the pages of any file that it is pointed
		// at, before it looks at its format. Other tools do not keep them, and SQLite has
		// no way to take them out again.
		return false, fmt.Errorf("%w: an older Tarn has added checksums to its pages", errOutdated)
	case db.keys != nil && !bytes.Equal(db.keys.salt, keys.salt):
		return false, fmt.Errorf("%w: it is another file than the one that was open", errSchema)
	}
	db.keys = keys
	return false, nil
}

// migrate changes a file of an older format to the present one, in one transaction. No row of
// the content is changed, so that it can be used. It leaves anything that does not match the
// older format to readFormat.
func migrate(conn *sqlite3.Conn, key []byte, p *progress) error {
	id, err1 := number(conn, "PRAGMA application_id")
	version, err2 := number(conn, "PRAGMA user_version")
	if err := first(err1, err2); err != nil || id != applicationID || oldTables[version] == nil {
		return err
	}
	noted, err := number(conn, "SELECT value FROM tarn_format WHERE name='format'")
	switch {
	case err != nil || noted != version:
		return fmt.Errorf("%w: the header says format %d, and the table %d (%v)", errBadRow, version, noted, err)
	case reserved(conn) != 0:
		return nil
	}
	if err := checkSchema(conn, oldTables[version]); err != nil {
		return err
	}
	keys, err := readKeys(conn, key)
	if err == nil {
		err = conn.Exec("BEGIN IMMEDIATE;" + migrations[version])
	}
	if err == nil && version > 4 && version < 10 {
		err = migrateLogs(conn, keys, version, p)
	}
	if err == nil {
		err = migrateDictionaries(conn, keys)
	}
	if err == nil {
		err = conn.Exec(fmt.Sprintf("UPDATE tarn_format SET value=%d WHERE name='format'; PRAGMA user_version=%[1]d; COMMIT", format))
	}
	if err != nil && !conn.GetAutocommit() {
		err = first(err, conn.Exec("ROLLBACK"))
	}
	return err
}

// migrateLogs changes the tables of histories. What takes long with a large one is left to
// convertHistories.
func migrateLogs(conn *sqlite3.Conn, keys *fileKeys, version int64, p *progress) error {
	var all []momentTable
	err := query(conn, "SELECT l.id, coalesce(c.name, '') FROM tarn_logs l LEFT JOIN tarn_collections c ON c.id=l.id", func(row *sqlite3.Stmt) error {
		all = append(all, momentTable{conn, keys, row.ColumnInt64(0), row.ColumnText(1)})
		return nil
	})
	if err == nil {
		err = migrateLogRows(conn, keys)
	}
	for _, t := range all {
		if err == nil && version < 7 {
			err = t.migrate(p)
		}
		if err == nil && version < 8 {
			err = conn.Exec("ALTER TABLE " + basesTable(t.id) + " ADD COLUMN cols BLOB")
		}
		if err == nil {
			err = beginMove(conn, t.id)
		}
	}
	return err
}

// reserved is the number of bytes of each page that SQLite leaves to extensions.
func reserved(conn *sqlite3.Conn) int {
	n, _ := conn.FileControl("main", sqlite3.FCNTL_RESERVE_BYTES)
	bytes, _ := n.(int)
	return bytes
}

// readFormat checks whether a file can be read without changes, and returns its keys.
//
// The format is in the header and in a table. If the two differ, one of them is damaged:
// a flipped bit in the header must not make the file look like that of a newer Tarn, or
// of another program, which would never be replaced.
func readFormat(conn *sqlite3.Conn, key []byte) (*fileKeys, error) {
	id, err1 := number(conn, "PRAGMA application_id")
	version, err2 := number(conn, "PRAGMA user_version")
	ours, err3 := number(conn, "SELECT count(*) FROM sqlite_schema WHERE name='tarn_format'")
	switch err := first(err1, err2, err3); {
	case err != nil:
		return nil, err
	case ours == 0 && id != applicationID:
		return nil, fmt.Errorf("%w: use that", errForeign)
	case id == applicationID && oldTables[version] != nil:
		return nil, fmt.Errorf("%w, %d, and this Tarn reads format %d: start its mirror once, which takes it over in place", errOlderFormat, version, format)
	case id == applicationID && version < format:
		return nil, fmt.Errorf("%w: it has the older format %d (this one reads %d)", errOutdated, version, format)
	}
	noted, err := number(conn, "SELECT value FROM tarn_format WHERE name='format'")
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errSchema, err)
	case id != applicationID || version != noted:
		return nil, fmt.Errorf("%w: the header says format %d, and the table %d", errBadRow, version, noted)
	case version > format:
		return nil, fmt.Errorf("it was %w (format %d; this one reads %d): use that", ErrNewerFormat, version, format)
	}
	if err := checkSchema(conn, tables); err != nil {
		return nil, err
	}
	return readKeys(conn, key)
}

// readKeys derives the keys of a file.
func readKeys(conn *sqlite3.Conn, key []byte) (*fileKeys, error) {
	found := map[string][]byte{}
	err := query(conn, "SELECT name, value FROM tarn_format", func(row *sqlite3.Stmt) error {
		found[row.ColumnText(0)] = row.ColumnBlob(1, nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	salt, proof := found["salt"], found["key"]
	switch {
	case len(salt) != saltSize:
		return nil, fmt.Errorf("%w: the salt is missing in tarn_format", errBadRow)
	case len(proof) == 0 && key != nil:
		return nil, fmt.Errorf("%w: it is not encrypted, and a key was given", ErrKey)
	case len(proof) > 0 && key == nil:
		return nil, fmt.Errorf("%w: it is encrypted, and no key was given", ErrKey)
	}
	keys, err := newFileKeys(key, salt)
	if err != nil || key == nil {
		return keys, err
	}
	if plain, err := keys.seal.open(proof, []byte(keyProof)); err != nil || !bytes.Equal(plain, []byte(keyProof)) {
		return nil, fmt.Errorf("%w: it was encrypted with another key", ErrKey)
	}
	return keys, nil
}

// create makes the tables of a new file. A file that replaces another gets its keys,
// since there may still be readers of rows that were written with them.
func (db *DB) create(conn *sqlite3.Conn) (err error) {
	if db.keys == nil {
		if db.keys, err = newFileKeys(db.opts.Key, newSalt()); err != nil {
			return err
		}
	}
	proof := []byte(nil)
	if db.keys.seal != nil {
		if proof, err = db.keys.seal.close([]byte(keyProof), []byte(keyProof)); err != nil {
			return err
		}
	}
	if err := conn.Exec("BEGIN IMMEDIATE;" + strings.Join(tables, ";")); err != nil {
		return err
	}
	if err := execute(conn, "INSERT INTO tarn_format VALUES ('format', ?), ('key', ?), ('salt', ?)", format, proof, db.keys.salt); err != nil {
		return err
	}
	return conn.Exec(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT", applicationID, format))
}

// checkSchema checks that tables, indexes and views are as this package made them, and
// that the tables have no others: a foreign trigger or index would run its own code
// whenever a row is written.
func checkSchema(conn *sqlite3.Conn, made []string) error {
	want, tables := map[string]string{}, map[string]bool{}
	for _, sql := range made {
		kind, name := madeBy(sql)
		want[name] = sql
		if kind != "INDEX" {
			tables[name] = true
		}
	}
	err := query(conn, "SELECT type, name, tbl_name, sql FROM sqlite_schema", func(row *sqlite3.Stmt) error {
		name, sql := row.ColumnText(1), row.ColumnText(3)
		switch expected, ours := want[name]; {
		case ours && sql == expected:
			delete(want, name)
		case ours:
			return fmt.Errorf("%w: %s differs from its definition", errSchema, name)
		case tables[row.ColumnText(2)] && row.ColumnType(3) != sqlite3.NULL: // NULL: made by a constraint
			return fmt.Errorf("%w: %s has a %s %s", errSchema, row.ColumnText(2), row.ColumnText(0), name)
		}
		return nil
	})
	for name := range want {
		if err == nil {
			err = fmt.Errorf("%w: %s is missing", errSchema, name)
		}
	}
	return err
}

// madeBy reads what a statement of ours makes.
func madeBy(sql string) (kind, name string) {
	words := strings.SplitN(sql, " ", 4)
	return words[1], strings.Trim(words[2], `"`)
}

// number asks for one number.
func number(conn *sqlite3.Conn, sql string, args ...any) (n int64, err error) {
	err = query(conn, sql, func(row *sqlite3.Stmt) error {
		n = row.ColumnInt64(0)
		return nil
	}, args...)
	return n, err
}

// execute runs one statement.
func execute(conn *sqlite3.Conn, sql string, args ...any) error {
	return query(conn, sql, func(*sqlite3.Stmt) error { return nil }, args...)
}

// query runs one statement and calls each for every row.
func query(conn *sqlite3.Conn, sql string, each func(row *sqlite3.Stmt) error, args ...any) error {
	var stmt *sqlite3.Stmt
	err := withoutPanic(func() (err error) {
		stmt, _, err = conn.Prepare(sql)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = withoutPanic(stmt.Close) }() // it repeats the last error
	return run(stmt, each, args...)
}

// run runs a prepared statement, which can be run again.
func run(stmt *sqlite3.Stmt, each func(row *sqlite3.Stmt) error, args ...any) error {
	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			return err
		}
	}
	for {
		more, err := step(stmt)
		if err != nil || !more {
			_ = stmt.Reset() // it repeats the error of step
			return err
		}
		if err := each(stmt); err != nil {
			return first(err, stmt.Reset())
		}
	}
}

// step computes the next row. It turns a panic of SQLite into an error: damaged files
// can cause one. A panic of the caller's function propagates.
func step(stmt *sqlite3.Stmt) (more bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanicked, v)
		}
	}()
	return stmt.Step(), stmt.Err()
}

func bind(stmt *sqlite3.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case nil:
		return stmt.BindNull(i)
	case string:
		return stmt.BindText(i, v)
	case []byte:
		if v == nil {
			return stmt.BindNull(i)
		}
		return stmt.BindBlob(i, v)
	case Sum:
		return stmt.BindBlob(i, v[:])
	case int:
		return stmt.BindInt64(i, int64(v))
	case int64:
		return stmt.BindInt64(i, v)
	case float64:
		return stmt.BindFloat(i, v)
	case bool:
		return stmt.BindBool(i, v)
	case JSON:
		return stmt.BindRawText(i, v)
	}
	return fmt.Errorf("a %T cannot be stored in a column", arg)
}
