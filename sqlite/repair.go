package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// repairSuffix is that of the new file of [Repair], before it replaces the damaged one.
const repairSuffix = ".repair"

// Repaired is the result of [Repair].
type Repaired struct {
	// Found holds the defects.
	Found *Report
	// Changed says that the file was replaced; it is false if there were no defects.
	Changed bool
	// Saved counts the saved objects by collection. The next start serves a collection
	// with missing objects, and lists it to get them; a collection that is not in Saved
	// starts empty.
	Saved map[string]int
	// States counts the saved states of histories. What could not be saved of one is a gap
	// with the cause damaged. A collection that is not in States begins a new
	// history, if it has one.
	States map[string]int
}

// Repair saves the good objects of a damaged directory. It copies every object whose rows are
// all good to a new file, which replaces the old one. It does the same with the states of
// histories. Lost objects come again from the source; lost states do not, and are gaps.
//
// It fails if a process has the directory open, and if nothing can be saved: then it
// leaves the file unchanged, and the next start builds it again.
//
// Why not repair the file in place: what SQLite does with damaged pages is undefined. Why
// not keep the old file: see [DB.removeDamaged].
func Repair(ctx context.Context, dir string, key []byte) (*Repaired, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return nil, noReplica(dir, err)
	}
	if err := prepareDirectory(dir); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	found, err := Check(ctx, dir, key)
	if err != nil {
		return nil, err
	}
	done := &Repaired{Found: found, Saved: map[string]int{}, States: map[string]int{}}
	if found.OK() {
		for _, c := range found.Collections {
			done.Saved[c.Name] = c.Objects
			if c.States > 0 {
				done.States[c.Name] = c.States
			}
		}
		return done, nil
	}
	if err := removeRepair(dir); err != nil {
		return nil, fmt.Errorf("sqlite: repair %s: %w", dir, err)
	}
	if err := done.copy(ctx, dir, key); err != nil {
		return nil, fmt.Errorf("sqlite: %s could not be repaired: %w; start the mirror to build it again", dir, first(err, removeRepair(dir)))
	}
	// Remove the log first: SQLite would apply it to the new file.
	for _, suffix := range []string{"-wal", "-shm"} {
		err = errors.Join(err, remove(path+suffix))
	}
	if err == nil {
		err = os.Rename(path+repairSuffix, path)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: %s was repaired, but the new file cannot replace the old one: %w", dir, err)
	}
	done.Changed = true
	return done, nil
}

// removeRepair removes the file of an unfinished repair.
func removeRepair(dir string) error {
	var all []error
	for _, suffix := range append([]string{"-journal"}, suffixes...) {
		all = append(all, remove(filepath.Join(dir, fileName+repairSuffix+suffix)))
	}
	return errors.Join(all...)
}

// copy writes the new file.
func (d *Repaired) copy(ctx context.Context, dir string, key []byte) error {
	path := filepath.Join(dir, fileName)
	if err := touch(path + repairSuffix); err != nil {
		return err
	}
	to, err := sqlite3.OpenFlags(fileURI(path+repairSuffix), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return err
	}
	again := &Report{}
	err = readGuarded(ctx, path, maxGrace, func(from *sqlite3.Conn, _ *stopper) error {
		if err := first(distrust(from), tolerate(from)); err != nil {
			return err
		}
		keys, err := again.keys(from, key)
		if err != nil {
			return err
		}
		w := &repairWriter{db: &DB{dir: dir, opts: Options{Key: key}, keys: keys, writer: to}, saved: d.Saved, states: d.States}
		if err := w.begin(); err != nil {
			return err
		}
		if err := again.file(ctx, from, key, w.collection); err != nil {
			return err
		}
		return w.end()
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return first(err, closeAll(to))
}

// repairWriter writes the good units to a new file.
type repairWriter struct {
	db            *DB
	saved, states map[string]int
	// finish ends the current collection.
	finish func() error
}

// begin creates the new file. It has no log, since it has no readers.
func (w *repairWriter) begin() error {
	conn := w.db.writer
	if err := first(distrust(conn), conn.Exec(fmt.Sprintf("PRAGMA page_size=%d; PRAGMA journal_mode=MEMORY; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF", pageSize))); err != nil {
		return err
	}
	if err := w.db.create(conn); err != nil {
		return err
	}
	w.finish = func() error { return nil }
	return conn.Exec("BEGIN IMMEDIATE")
}

func (w *repairWriter) end() error {
	if err := w.finish(); err != nil {
		return err
	}
	return w.db.writer.Exec("COMMIT")
}

// collection begins a collection. It skips one whose first state was never complete.
func (w *repairWriter) collection(from *unitReader) (func(*unit) error, error) {
	if err := w.finish(); err != nil {
		return nil, err
	}
	w.finish = func() error { return nil }
	row := from.row
	if !row.state.whole && row.state.version == "" {
		return func(*unit) error { return nil }, nil
	}
	conn := w.db.writer
	if err := conn.Exec(strings.Join(from.layout.made, ";\n")); err != nil {
		return nil, err
	}
	dictionary, err := from.packer.readDictionary(from.conn, row.id)
	if err == nil && len(dictionary) > 0 {
		err = from.packer.writeDictionary(conn, row.id, dictionary)
	}
	if err != nil {
		return nil, err
	}
	units := &unitWriter{reader: reader{conn: conn, stmts: map[string]*sqlite3.Stmt{}}, from: from}
	w.finish = func() error {
		lost := units.objects != row.state.objects || units.sum != row.state.sum
		row.state.objects, row.state.sum = units.objects, units.sum
		if lost {
			row.state.markIncomplete()
		}
		w.saved[row.name] = int(units.objects)
		for _, list := range from.layout.lists {
			if err := conn.Exec(list.fill(row.id)); err != nil {
				return err
			}
		}
		states, err := units.history(row, w.db.keys)
		if err != nil {
			return err
		}
		if states > 0 {
			w.states[row.name] = int(states)
		}
		return execute(conn, "INSERT INTO tarn_collections ("+collectionColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row.values(w.db.keys)...)
	}
	return units.write, nil
}

// unitWriter writes the units of a collection as they were read.
type unitWriter struct {
	reader
	from    *unitReader
	objects int64
	sum     uint64
}

// write writes a whole unit or nothing: if pages were exchanged, two good units may have
// the same key.
func (w *unitWriter) write(u *unit) error {
	if err := w.conn.Exec("SAVEPOINT unit"); err != nil {
		return err
	}
	err := w.tables(u)
	if unreadable(err) {
		return w.conn.Exec("ROLLBACK TO unit; RELEASE unit")
	}
	if err != nil {
		return err
	}
	w.objects++
	w.sum += u.sum.number()
	return w.conn.Exec("RELEASE unit")
}

func (w *unitWriter) tables(u *unit) error {
	id := w.from.row.id
	err := w.insert(objectsTable(id), u.id, string(u.key), u.sum, u.found, u.parts, u.body)
	if err != nil || !w.from.layout.shown {
		return err
	}
	if err := w.insert(rowsTable(id), append([]any{u.id, string(u.key)}, u.values...)...); err != nil {
		return err
	}
	for name, value := range u.labels {
		if err := w.insert(labelsTable(id), u.id, name, value); err != nil {
			return err
		}
	}
	for i, column := range w.from.layout.wide {
		if err := w.wide(u, column, u.wide[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *unitWriter) wide(u *unit, column wideLayout, value wideUnit) error {
	id := w.from.row.id
	table := wideTable(id, column.name)
	if !column.shared {
		return w.insert(table, u.id, value.value, value.sum)
	}
	if value.shared.id == 0 {
		return w.insert(table, append(append([]any{u.id, nil}, value.words...), value.sum)...)
	}
	known := false
	err := w.query(fmt.Sprintf("SELECT 1 FROM %s WHERE id=?", quote(valuesTable(id, column.name))), func(*sqlite3.Stmt) error {
		known = true
		return nil
	}, value.shared.id)
	if err == nil && !known {
		var sum []byte
		var text any
		if text, err = w.from.sharedValue(column.name, value.shared.id, &sum); err == nil {
			err = w.insert(valuesTable(id, column.name), value.shared.id, sum, text)
		}
	}
	if err != nil {
		return err
	}
	return w.insert(table, append(append([]any{u.id, value.shared.id}, value.words...), value.sum)...)
}

// insert writes a row of all columns of a table.
func (w *unitWriter) insert(table string, values ...any) error {
	places := strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")
	return w.query("INSERT INTO "+quote(table)+" VALUES ("+places+")", noRow, values...)
}
