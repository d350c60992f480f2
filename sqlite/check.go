package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// maxFindings is the largest number of findings in a report.
const maxFindings = 100

// Report is what [Check] found.
type Report struct {
	Dir string
	// Bytes is the size of the file, LogBytes that of its log.
	Bytes, LogBytes int64
	Encrypted       bool
	Collections     []Checked
	// Findings are the defects; More counts those beyond the first hundred.
	Findings []Finding
	More     int
}

// Checked is the result for one collection.
type Checked struct {
	Name    string
	Version tarn.Version
	// LastContact is the time of the last contact with the source before that state was
	// written.
	LastContact time.Time
	// Objects counts the objects, Bad the damaged ones, and Missing the absent ones.
	Objects, Bad, Missing int
	// States is the number of past and present states in its history, 0 without one.
	States int
	// Complete says that the next start serves the collection and resumes from its
	// version.
	Complete bool
}

// Finding is one defect. It has names, and no content.
type Finding struct {
	// Collection and Key are its place, as far as known.
	Collection string
	Key        tarn.Key
	Text       string
}

func (f Finding) String() string {
	where := f.Collection
	if f.Key != "" {
		where += ": " + string(f.Key)
	}
	if where != "" {
		where += ": "
	}
	return where + f.Text
}

// OK reports whether there are no findings.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

func (r *Report) found(collection string, key tarn.Key, text string) {
	if len(r.Findings) == maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, Finding{collection, key, strings.ReplaceAll(text, "\n", "; ")})
}

// Check checks a directory, as fsck checks a file system: its owner and mode, the
// structure of the database, its tables, and every row by its checksum. It changes
// nothing. It may run while a mirror writes, and then sees one state. The key is nil
// if the directory is not encrypted.
//
// It fails if there is nothing to check: no replica, another key, another format.
// Damage is a finding, not an error.
func Check(ctx context.Context, dir string, key []byte) (*Report, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return nil, noReplica(dir, err)
	}
	r := &Report{Dir: dir, Encrypted: key != nil, Bytes: fileSize(path), LogBytes: fileSize(path + "-wal")}
	for _, text := range accessProblems(dir) {
		r.found("", "", text)
	}
	err := readGuarded(ctx, path, maxGrace, func(conn *sqlite3.Conn, _ *stopper) error { return r.file(ctx, conn, key, nil) })
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, ErrKey) || errors.Is(err, ErrNewerFormat) || errors.Is(err, errForeign) || errors.Is(err, errOlderFormat):
		return nil, fmt.Errorf("sqlite: %s cannot be checked: %w", dir, err)
	case errors.Is(err, errOutdated):
		return nil, fmt.Errorf("sqlite: %s cannot be checked: %w: the next start of its writer builds it again", dir, err)
	case unreadable(err):
		r.found("", "", withoutKind(err))
	case err != nil:
		return nil, fmt.Errorf("sqlite: check %s: %w", dir, err)
	}
	return r, nil
}

// file checks one state of a database. It calls saved, if set, for each collection, and
// the returned function for each good unit.
func (r *Report) file(ctx context.Context, conn *sqlite3.Conn, key []byte, saved func(*unitReader) (func(*unit) error, error)) error {
	conn.SetInterrupt(ctx)
	if err := first(distrust(conn), conn.BusyTimeout(busyTimeout), tolerate(conn), conn.Exec("PRAGMA temp_store=MEMORY; BEGIN")); err != nil {
		return err
	}
	defer func() { _ = conn.Exec("COMMIT") }() // it was only read
	keys, err := r.keys(conn, key)
	if err != nil {
		return err
	}
	if err := r.structure(conn); err != nil {
		return err
	}
	rows, err := r.collections(conn, keys)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := r.collection(conn, keys, row, saved); err != nil {
			return err
		}
	}
	return r.strayBundles(conn)
}

// keys returns the keys of the file. It may find them even if the header or the list of
// tables is damaged, and then the undamaged rows can be read.
func (r *Report) keys(conn *sqlite3.Conn, key []byte) (*fileKeys, error) {
	keys, err := readFormat(conn, key)
	if !unreadable(err) {
		return keys, err
	}
	if keys, also := readKeys(conn, key); also == nil {
		r.found("", "", withoutKind(err))
		return keys, nil
	}
	return nil, err
}

// tolerate makes a truncated file readable: SQLite refuses it unless the connection may
// repair it.
func tolerate(conn *sqlite3.Conn) error {
	if _, err := number(conn, "SELECT count(*) FROM sqlite_schema"); !errors.Is(err, sqlite3.CORRUPT) {
		return nil // a read reports other defects
	}
	if _, err := conn.Config(sqlite3.DBCONFIG_DEFENSIVE, false); err != nil {
		return err
	}
	return conn.Exec("PRAGMA writable_schema=ON")
}

// structure has SQLite check its pages and indexes.
func (r *Report) structure(conn *sqlite3.Conn) error {
	err := query(conn, "PRAGMA integrity_check", func(row *sqlite3.Stmt) error {
		if text := row.ColumnText(0); text != "ok" {
			r.found("", "", "the database is not as SQLite wrote it: "+text)
		}
		return nil
	})
	if unreadable(err) {
		r.found("", "", "the database cannot be read: "+err.Error())
		return nil // parts of it may be readable
	}
	return err
}

// collections returns the collections whose rows are good.
func (r *Report) collections(conn *sqlite3.Conn, keys *fileKeys) (rows []collectionRow, err error) {
	err = query(conn, "SELECT "+collectionColumns+" FROM tarn_collections ORDER BY id", func(row *sqlite3.Stmt) error {
		c, wrong := scanCollection(row, keys)
		if wrong != nil {
			r.found(c.name, "", "the record of its state is damaged: the whole collection must be read from the source again")
			return nil
		}
		rows = append(rows, c)
		return nil
	})
	if unreadable(err) {
		r.found("", "", "the collections cannot be read: "+err.Error())
		err = nil
	}
	return rows, err
}

// collection checks the units of a collection.
func (r *Report) collection(conn *sqlite3.Conn, keys *fileKeys, row collectionRow, saved func(*unitReader) (func(*unit) error, error)) error {
	c := Checked{Name: row.name, Version: row.state.version, LastContact: row.state.lastContact, Complete: row.state.whole && !row.state.incomplete && row.state.version != ""}
	before := len(r.Findings) + r.More
	units, err := newUnitReader(conn, keys, row)
	if unreadable(err) {
		r.found(row.name, "", withoutKind(err))
		c.Complete, c.Missing = false, int(row.state.objects)
		r.Collections = append(r.Collections, c)
		return nil
	}
	if err != nil {
		return err
	}
	// Objects can be good although the tables were changed.
	if err := checkSchema(conn, units.layout.made); unreadable(err) {
		r.found(row.name, "", err.Error())
	} else if err != nil {
		return err
	}
	save := func(*unit) error { return nil }
	if saved != nil {
		if save, err = saved(units); err != nil {
			return err
		}
	}
	sum := uint64(0)
	lost := units.all(func(u *unit, wrong error) error {
		c.Objects++
		sum += u.sum.number()
		if wrong == nil {
			return save(u)
		}
		c.Bad++
		r.found(row.name, u.key, withoutKind(wrong))
		return nil
	})
	if lost != nil && !unreadable(lost) {
		return lost
	}
	if lost != nil {
		r.found(row.name, "", withoutKind(lost))
	}
	c.Missing = max(int(row.state.objects)-c.Objects, 0)
	switch n := row.state.objects; {
	case int64(c.Objects) != n:
		r.found(row.name, "", fmt.Sprintf("%d objects are there, and %d belong there", c.Objects, n))
	case sum != row.state.sum && c.Bad == 0:
		r.found(row.name, "", "objects are there that were written at another time than the rest")
	}
	if err := r.strays(conn, row, units.layout); err != nil {
		return err
	}
	if saved == nil {
		if err := first(r.bundles(conn, row, units.packer), r.history(conn, keys, row, &c)); err != nil {
			return err
		}
	}
	c.Complete = c.Complete && len(r.Findings)+r.More == before
	r.Collections = append(r.Collections, c)
	return nil
}

// unreadable reports whether an error comes from the content of the file. For a missing
// table SQLite returns only the generic ERROR.
func unreadable(err error) bool { return damaged(err) || errors.Is(err, sqlite3.ERROR) }

// withoutKind is the text of an error without the prefix of errBadRow.
func withoutKind(err error) string { return strings.TrimPrefix(err.Error(), errBadRow.Error()+": ") }

// strays counts the rows that belong to no object, and the rows of lists that differ from
// their objects.
func (r *Report) strays(conn *sqlite3.Conn, row collectionRow, l layout) error {
	if !l.shown {
		return nil
	}
	tables := []string{rowsTable(row.id), labelsTable(row.id)}
	for _, w := range l.wide {
		tables = append(tables, wideTable(row.id, w.name))
	}
	for _, table := range tables {
		n, err := number(conn, fmt.Sprintf("SELECT count(*) FROM %s WHERE id NOT IN (SELECT id FROM %s)", quote(table), objectsTable(row.id)))
		switch {
		case unreadable(err):
			r.found(row.name, "", fmt.Sprintf("%s cannot be read: %v", table, err))
		case err != nil:
			return err
		case n > 0:
			r.found(row.name, "", fmt.Sprintf("%s has %d rows that belong to no object", table, n))
		}
	}
	for _, list := range l.lists {
		n, err := number(conn, list.differing(row.id))
		switch {
		case unreadable(err):
			r.found(row.name, "", fmt.Sprintf("its list of %s cannot be read: %v", list.Column, err))
		case err != nil:
			return err
		case n > 0:
			r.found(row.name, "", fmt.Sprintf("%d rows of its list of %s are not those of its objects", n, list.Column))
		}
	}
	return nil
}

// examine returns the lines of a report about a damaged file.
func examine(dir string, key []byte, limit time.Duration) (lines []string) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	report, err := Check(ctx, dir, key)
	if err != nil {
		return []string{err.Error()}
	}
	for _, f := range report.Findings {
		lines = append(lines, f.String())
	}
	if report.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", report.More))
	}
	return lines
}
