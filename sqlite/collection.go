package sqlite

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// Collection says what a [Store] holds.
type Collection struct {
	// Name tells it from others in the same directory: letters, digits and
	// underscores, such as "pods" or "deployments_apps".
	Name string
	// Identity says of what the content is a copy: which server, which objects of
	// it. Content of another identity is dropped, not taken for this one's.
	Identity string
}

// state is what a collection shows, as it was last committed.
type state struct {
	version tarn.Version
	// positions is where each section stood, one to a line.
	positions string
	// heard is when the source was last heard before.
	heard   time.Time
	objects int64
	// sum is that of the checksums of all objects.
	sum uint64
	// whole says that everything is there that belongs to the version.
	whole bool
	// unsound says that the source said more, which could not be taken.
	unsound bool
}

// Of whole and unsound one column is made.
const (
	notWhole int64 = iota
	wholeAndSound
	wholeUnsound
)

func (s state) soundness() int64 {
	switch {
	case !s.whole:
		return notWhole
	case s.unsound:
		return wholeUnsound
	default:
		return wholeAndSound
	}
}

// collection is a collection in its file. It belongs to whoever has the DB's lock.
type collection struct {
	Collection
	db *DB
	// identity is all that must be the same for the content to be of use.
	identity string
	id       int64
	// label is the caller's: it goes to the file that takes the place of a damaged
	// one too.
	label  string
	table  *prepared
	state  state
	packer *packer
	// put and others are the statements of the writing connection.
	stmts writeStmts
	// released says that another store may have the collection now.
	released bool
	// note is what happened to the content when it was opened.
	note string
	// health is what is told without the lock, which may be held for long.
	health atomic.Pointer[tarn.DiskHealth]
}

// tell makes version and note known.
func (c *collection) tell() {
	c.health.Store(&tarn.DiskHealth{Version: c.state.version, Note: c.note})
}

type writeStmts struct {
	find, update, insert, remove, state *sqlite3.Stmt
	table                               tableStmts
}

// close ends the statements, which a file that goes on would keep otherwise.
func (w writeStmts) close() {
	all := []*sqlite3.Stmt{w.find, w.update, w.insert, w.remove, w.state}
	for _, stmt := range append(all, w.table.all()...) {
		_ = stmt.Close() // it tells again how it last went
	}
}

func (c *collection) objectsTable() string { return fmt.Sprintf("tarn_objects_%d", c.id) }

// add makes a collection known and opens it.
func (db *DB) add(c *collection) error {
	if !plainName(c.Name) {
		return fmt.Errorf("sqlite: %q cannot be the name of a collection: use letters, digits and underscores, and begin with a letter", c.Name)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.usable(); err != nil {
		return err
	}
	if _, ok := db.collections[c.Name]; ok {
		return fmt.Errorf("sqlite: the collection %s of %s has been opened before: give one of the two another name, or a directory of its own", c.Name, db.dir)
	}
	err := c.attach()
	if damaged(err) {
		if err := db.rescue(err); err != nil {
			return err
		}
		err = c.attach()
	}
	if err != nil {
		return db.explain("open "+c.Name+" in", err)
	}
	db.collections[c.Name] = c
	return nil
}

// plainName says whether a name can be a table's: it is a plain word, and none of
// ours.
func plainName(name string) bool {
	lower := strings.ToLower(name)
	return plainWord(name) && !strings.HasPrefix(lower, "tarn_") && !strings.HasPrefix(lower, "sqlite_")
}

// plainWord says whether a name can stand in SQL as it is.
func plainWord(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != "" && len(name) <= 200
}

// resumeCollections opens in a new file, or connection, what was open before.
func (db *DB) resumeCollections() error {
	for _, c := range db.collections {
		c.stmts = writeStmts{} // of a connection that is closed
		if err := c.attach(); err != nil {
			return db.explain("open "+c.Name+" in", err)
		}
	}
	return nil
}

// attach finds the collection in the file, or makes it there. What is there of
// another identity is dropped.
func (c *collection) attach() error {
	defer c.tell()
	defer c.db.erase()
	return c.db.transact(func(conn *sqlite3.Conn) error {
		found, err := c.find(conn)
		if err != nil {
			return err
		}
		if !found {
			if err := c.create(conn); err != nil {
				return err
			}
		}
		return c.prepare(conn)
	})
}

// find reads the collection's row, and says whether it can be used.
func (c *collection) find(conn *sqlite3.Conn) (found bool, err error) {
	var identity, label string
	var dictionary []byte
	c.id = 0
	err = query(conn, "SELECT id, identity, version, heard_ms, objects, whole, sum, dictionary, label FROM tarn_collections WHERE name=?", func(row *sqlite3.Stmt) error {
		c.id, identity = row.ColumnInt64(0), row.ColumnText(1)
		c.state = state{
			version: tarn.Version(row.ColumnText(2)), heard: time.UnixMilli(row.ColumnInt64(3)),
			objects: row.ColumnInt64(4), whole: row.ColumnInt64(5) != notWhole, unsound: row.ColumnInt64(5) == wholeUnsound, sum: uint64(row.ColumnInt64(6)),
		}
		dictionary, label = row.ColumnBlob(7, nil), row.ColumnText(8)
		return nil
	}, c.Name)
	if err != nil || c.id == 0 {
		return false, err
	}
	if identity != c.identity {
		c.note = "it was of " + firstLine(identity) + ", and is now of " + firstLine(c.identity)
		if firstLine(identity) == firstLine(c.identity) {
			c.note = "it was written by another version, with other fields"
		}
		c.db.log(slog.LevelWarn, "a collection on disk is built anew from the source", "collection", c.Name, "cause", c.note)
		return false, c.drop(conn)
	}
	c.label = label
	return true, c.packer.load(dictionary)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return fmt.Sprintf("%q", line)
}

// drop removes the collection, and its bytes from the file: what they say may be
// what is not to be on disk any more. They are in the log until [DB.erase].
func (c *collection) drop(conn *sqlite3.Conn) error {
	var drops []string
	// The tables may be those of another version, with other columns.
	err := query(conn, `SELECT type, name FROM sqlite_schema WHERE type = 'view' AND name IN (?1, ?2)
		OR type = 'table' AND (name IN (?3, ?4) OR substr(name, 1, length(?5)) = ?5)`,
		func(row *sqlite3.Stmt) error {
			drops = append(drops, "DROP "+row.ColumnText(0)+" "+quote(row.ColumnText(1)))
			return nil
		}, c.Name, labelsView(c.Name), labelsTable(c.id), rowsTable(c.id), wideTable(c.id, ""))
	if err != nil {
		return err
	}
	drops = append([]string{"PRAGMA secure_delete=ON"}, drops...)
	for _, sql := range append(drops, "DROP TABLE IF EXISTS "+c.objectsTable(), "PRAGMA secure_delete=OFF") {
		if err := conn.Exec(sql); err != nil {
			return err
		}
	}
	c.db.dropped = true
	return execute(conn, "DELETE FROM tarn_collections WHERE id=?", c.id)
}

func (c *collection) create(conn *sqlite3.Conn) error {
	c.state = state{}
	c.packer.unsaved()
	err := execute(conn, "INSERT INTO tarn_collections (name, identity, version, heard_ms, objects, whole, sum, label) VALUES (?, ?, '', 0, 0, 0, 0, ?)", c.Name, c.identity, c.label)
	if err != nil {
		return err
	}
	c.id = conn.LastInsertRowID()
	err = conn.Exec("CREATE TABLE " + c.objectsTable() + " (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, sum INTEGER NOT NULL, found INTEGER NOT NULL, parts BLOB, body BLOB NOT NULL)")
	if err != nil || c.table == nil {
		return err
	}
	return conn.Exec(c.table.ddl(c.Name, c.id))
}

// prepare makes the statements that write.
func (c *collection) prepare(conn *sqlite3.Conn) (err error) {
	make := func(sql string) *sqlite3.Stmt {
		if err != nil {
			return nil
		}
		var s *sqlite3.Stmt
		s, _, err = conn.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
		return s
	}
	t := c.objectsTable()
	c.stmts = writeStmts{
		find:   make("SELECT id, sum, found, parts FROM " + t + " WHERE key=?1"),
		update: make("UPDATE " + t + " SET sum=?2, found=?3, parts=?4, body=?5 WHERE id=?1"),
		insert: make("INSERT INTO " + t + " (key, sum, found, parts, body) VALUES (?1, ?2, ?3, ?4, ?5)"),
		remove: make("DELETE FROM " + t + " WHERE id=?1"),
		state:  make("UPDATE tarn_collections SET version=?2, heard_ms=?3, objects=?4, whole=?5, sum=?6, positions=?7 WHERE id=?1"),
	}
	if c.table != nil {
		c.stmts.table = c.table.stmts(c.id, make)
	}
	return err
}
