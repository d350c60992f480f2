package sqlite

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

const (
	// applicationID stands in the file's header, so that tools can tell what it is:
	// "Tarn" in ASCII.
	applicationID = 0x5461726e
	// format is the layout of the tables. It moves on when an older Tarn would
	// misread them, or this one an older file.
	format = 3
)

var (
	// errOutdated says that a file is whole but cannot be read any more.
	errOutdated = errors.New("the file is of no more use")
	// ErrNewerFormat says that a later version of Tarn wrote the file.
	ErrNewerFormat = errors.New("written by a newer Tarn")
)

// tables are those that are there once; each collection has its own besides.
//
// tarn_collections has one row for each: what it is a copy of, and the state that
// it shows. The version belongs to the objects: both are written in the same
// transaction. whole is 0 if something could not be written, so that the content
// is not to be begun with, and 2 if all of it is there, but the source said more that
// could not be taken, so that the version is not to be resumed from. sum is that of
// all rows' own, so that a page which was lost, or is another one's, is told although
// each row is right. positions is where each section stood, one to a line; label is
// the caller's.
const tables = `
CREATE TABLE tarn_format (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE tarn_collections (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	identity TEXT NOT NULL,
	version TEXT NOT NULL,
	heard_ms INTEGER NOT NULL,
	objects INTEGER NOT NULL,
	whole INTEGER NOT NULL,
	sum INTEGER NOT NULL,
	positions TEXT NOT NULL DEFAULT '',
	label TEXT NOT NULL DEFAULT '',
	dictionary BLOB
);`

// keyProof is encrypted into the file, to tell later whether the key is the same.
const keyProof = "the key that this file was written with"

// checkFormat makes the tables of a new file, and tells whether another can be
// used.
func (db *DB) checkFormat(conn *sqlite3.Conn) error {
	id, err := number(conn, "PRAGMA application_id")
	if err != nil {
		return err
	}
	version, err := number(conn, "PRAGMA user_version")
	if err != nil {
		return err
	}
	content, err := number(conn, "SELECT count(*) FROM sqlite_schema")
	switch {
	case err != nil:
		return err
	case content == 0:
		return db.create(conn)
	case id != applicationID:
		return errors.New("it is a database of something else; name another directory")
	case version > format:
		return fmt.Errorf("it was %w (format %d; this one writes %d): use that, or name another directory", ErrNewerFormat, version, format)
	case version < format:
		return fmt.Errorf("%w: it has format %d; this Tarn writes %d", errOutdated, version, format)
	}
	return db.checkKey(conn)
}

func (db *DB) create(conn *sqlite3.Conn) error {
	proof := []byte(nil)
	if db.seal != nil {
		proof = db.seal.close(nil, []byte(keyProof), []byte(keyProof))
	}
	if err := conn.Exec("BEGIN IMMEDIATE;" + tables); err != nil {
		return err
	}
	if err := execute(conn, "INSERT INTO tarn_format VALUES ('key', ?)", proof); err != nil {
		return err
	}
	return conn.Exec(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT", applicationID, format))
}

func (db *DB) checkKey(conn *sqlite3.Conn) error {
	var proof []byte
	err := query(conn, "SELECT value FROM tarn_format WHERE name='key'", func(row *sqlite3.Stmt) error {
		proof = row.ColumnBlob(0, nil)
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(proof) == 0 && db.seal == nil:
		return nil
	case len(proof) == 0:
		return fmt.Errorf("%w: it is not encrypted, and a key was given", errOutdated)
	case db.seal == nil:
		return fmt.Errorf("%w: it is encrypted, and no key was given", errOutdated)
	}
	if plain, err := db.seal.open(nil, proof, []byte(keyProof)); err != nil || !bytes.Equal(plain, []byte(keyProof)) {
		return fmt.Errorf("%w: it was encrypted with another key", errOutdated)
	}
	return nil
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
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		return err
	}
	defer stmt.Close()
	return run(stmt, each, args...)
}

// run runs a prepared statement, which can be run again.
func run(stmt *sqlite3.Stmt, each func(row *sqlite3.Stmt) error, args ...any) (err error) {
	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			return err
		}
	}
	for stmt.Step() {
		if err := each(stmt); err != nil {
			return errors.Join(err, stmt.Reset())
		}
	}
	// Reset tells again what Err tells.
	return errors.Join(stmt.Err(), ignore(stmt.Reset()))
}

func ignore(error) error { return nil }

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
