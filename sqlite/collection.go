package sqlite

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// Collection says what a [Store] holds.
type Collection struct {
	// Name is unique in the directory: letters, digits and underscores, such as
	// "pods" or "deployments_apps".
	Name string
	// Identity names what the content is a copy of: which server, which of its
	// objects. Content of another identity is dropped.
	Identity string
	// Dictionary is content that the objects are likely to share, at best an invented
	// object of the kind; objects are compressed against it. The file keeps it even
	// after the objects are deleted, so it must not contain real content.
	Dictionary []byte
	// History, if set, is used instead of the one in [Options]; WithoutHistory keeps none.
	History        History
	WithoutHistory bool
}

// state is the last committed state of a collection.
type state struct {
	version tarn.Version
	// positions holds the position of each section; see encodePositions.
	positions string
	// lastContact is the time of the last contact with the source before.
	lastContact time.Time
	objects     int64
	// sum adds up the checksums of all objects.
	sum uint64
	// whole says that the file has everything that belongs to the version.
	whole bool
	// incomplete says that the copy could not take everything that the source sent.
	incomplete bool
}

// One column stores whole and incomplete.
const (
	notWhole int64 = iota
	wholeAndComplete
	wholeIncomplete
)

func (s state) completeness() int64 {
	switch {
	case !s.whole:
		return notWhole
	case s.incomplete:
		return wholeIncomplete
	default:
		return wholeAndComplete
	}
}

// collection is a collection in its file. The DB's lock guards it.
type collection struct {
	Collection
	db *DB
	// identity is all that must be the same for the content to be of use.
	identity string
	id       int64
	// label is the caller's. A file that replaces a damaged one gets it too.
	label string
	// distrusted has the sections whose content is of another source, with the epochs that
	// they had; see [Store.SetLabel].
	distrusted map[string]string
	table      *prepared
	state      state
	packer     *packer
	// stmts are those of the writing connection.
	stmts   writeStmts
	bundles bundles
	// dropped says that attach dropped content.
	dropped bool
	// released says that another store may have the collection now.
	released bool
	// note describes what happened to the content on opening.
	note string
	// history says which past states are kept, and log is where, nil if none are kept. seed
	// writes the content to a new log.
	history History
	log     *logbook
	seed    func(conn *sqlite3.Conn) error
	// rewriter returns how states of an earlier identity are rewritten; see [Rewriter].
	rewriter func(identity string) (rewrite rewriteFunc, known bool)
	// keepLog says that attach dropped the content, whose state was prior, and left the
	// log. droppedLog is the log that it dropped.
	keepLog    bool
	prior      state
	droppedLog *logState
	// health is readable without the lock, which may be held for long.
	health atomic.Pointer[tarn.SinkHealth]
}

// publishState copies version and note to health.
func (c *collection) publishState() {
	note := c.note
	if c.log != nil {
		note = cmp.Or(note, c.log.note)
	}
	c.health.Store(&tarn.SinkHealth{Version: c.state.version, Note: note})
}

type writeStmts struct {
	find, update, insert, remove, unbundle *sqlite3.Stmt
	table                                  tableStmts
	log                                    []*sqlite3.Stmt
}

// close closes the statements, which would otherwise stay open with the file.
func (w writeStmts) close() {
	all := []*sqlite3.Stmt{w.find, w.update, w.insert, w.remove, w.unbundle}
	for _, stmt := range slices.Concat(all, w.table.all(), w.log) {
		_ = stmt.Close() // it repeats the last error
	}
}

func (c *collection) objectsTable() string { return objectsTable(c.id) }

func objectsTable(id int64) string { return fmt.Sprintf("tarn_objects_%d", id) }

// objectsDDL makes the table of objects. sum is a checksum of key and object, found one
// of the indexed values, parts those of the wide values.
func objectsDDL(id int64) string {
	return "CREATE TABLE " + objectsTable(id) + " (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, sum BLOB NOT NULL, found INTEGER NOT NULL, parts BLOB, body BLOB NOT NULL)"
}

// add registers a collection and opens it.
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

// plainName reports whether a name can be a table's: a plain word that is not reserved.
func plainName(name string) bool {
	lower := strings.ToLower(name)
	return plainWord(name) && !strings.HasPrefix(lower, "tarn_") && !strings.HasPrefix(lower, "sqlite_")
}

// plainWord reports whether a name needs no quotes in SQL.
func plainWord(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != "" && len(name) <= 200
}

// resumeCollections opens the same collections in a new file or connection.
func (db *DB) resumeCollections() error {
	for _, c := range db.collections {
		c.stmts = writeStmts{} // of a connection that is closed
		if err := c.attach(); err != nil {
			return db.explain("open "+c.Name+" in", err)
		}
	}
	return nil
}

// attach finds the collection in the file, or creates it. It drops content of another
// identity.
func (c *collection) attach() error {
	defer c.publishState()
	c.packer.keys, c.dropped, c.keepLog, c.droppedLog, c.bundles = c.db.keys, false, false, nil, bundles{}
	err := c.db.transact(func(conn *sqlite3.Conn) error {
		found, err := c.find(conn)
		if err != nil {
			return err
		}
		if !found {
			if err := c.create(conn); err != nil {
				return err
			}
		}
		fresh, err := c.attachLog(conn)
		if err != nil {
			return err
		}
		if err := c.prepare(conn); err != nil || !fresh {
			return err
		}
		return c.startLog(conn)
	})
	if err == nil && c.dropped {
		c.db.erase()
	}
	return err
}

// find reads the collection's row, and reports whether it can be used.
func (c *collection) find(conn *sqlite3.Conn) (found bool, err error) {
	row, err := readCollection(conn, c.db.keys, c.Name)
	c.id = row.id
	if err != nil || row.id == 0 {
		c.note = cmp.Or(c.note, c.db.note)
		return false, err
	}
	if row.identity != c.identity {
		derived, err := c.derive(conn, row)
		if err != nil {
			return false, err
		}
		if derived {
			row.identity = c.identity
		}
	}
	if row.identity != c.identity {
		c.note = "it was of " + firstLine(row.identity) + ", and is now of " + firstLine(c.identity)
		if firstLine(row.identity) == firstLine(c.identity) {
			c.note = "it was written by another version, with other fields"
		}
		c.db.logEvent(slog.LevelWarn, "a collection on disk is built again from the source", "collection", c.Name, "cause", c.note)
		c.dropped = true
		return false, c.dropOther(conn, row)
	}
	if err := checkSchema(conn, c.made()); err != nil {
		return false, err
	}
	c.state, c.label = row.state, row.label
	dictionary, err := c.packer.readDictionary(conn, c.id)
	if err != nil {
		return false, err
	}
	return true, c.packer.use(dictionary)
}

// made are the statements that make the collection's tables.
func (c *collection) made() []string {
	all := []string{objectsDDL(c.id)}
	if c.table != nil {
		all = append(all, c.table.ddl(c.Name, c.id)...)
	}
	return all
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return fmt.Sprintf("%q", line)
}

func (c *collection) create(conn *sqlite3.Conn) error {
	c.state = state{}
	if !c.keepLog {
		id, err := number(conn, "SELECT coalesce(max(id), 0) + 1 FROM tarn_collections")
		if err != nil {
			return err
		}
		c.id = id
	}
	if err := c.writeRow(conn, "INSERT INTO", c.state, c.label); err != nil {
		return err
	}
	if c.keepLog {
		dictionary, err := c.packer.readDictionary(conn, c.id)
		if err == nil {
			err = c.packer.use(dictionary)
		}
		if err != nil {
			return err
		}
	} else if dictionary := storedDictionary(c.Dictionary); dictionary != nil {
		if err := c.packer.writeDictionary(conn, c.id, dictionary); err != nil {
			return err
		}
		if err := c.packer.use(dictionary); err != nil {
			return err
		}
	}
	if c.table != nil {
		for _, l := range c.table.Lists {
			if err := conn.Exec(l.removal(c.Name, c.id)); err != nil {
				return err
			}
		}
	}
	return conn.Exec(strings.Join(c.made(), ";\n"))
}

// writeRow writes the collection's row.
func (c *collection) writeRow(conn *sqlite3.Conn, how string, s state, label string) error {
	r := collectionRow{id: c.id, name: c.Name, identity: c.identity, state: s, label: label}
	return execute(conn, how+" tarn_collections ("+collectionColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", r.values(c.db.keys)...)
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

		unbundle: make("DELETE FROM tarn_bundles WHERE collection=?1 AND span=?2"),
	}
	if c.table != nil {
		c.stmts.table = c.table.stmts(c.id, rowSums{c.db.keys.sums, c.Name}, make)
	}
	if c.log != nil {
		c.log.prepare(make)
		c.stmts.log = c.log.stmts.all()
	}
	return err
}
