package sqlite

import (
	"fmt"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// A Codec writes objects as bytes and reads them again. Any number of goroutines
// may use it at a time.
type Codec[T any] interface {
	// Append adds the object's bytes to buf.
	Append(buf []byte, object T) ([]byte, error)
	// Decode decodes bytes that Append wrote. It does not keep them.
	Decode(raw []byte) (T, error)
	// Schema names the encoding: content with another schema is dropped.
	Schema() string
}

// Tabular is a [Codec] that also shows its objects to SQL.
type Tabular[T any] interface {
	Codec[T]
	Table() Table
	// Row gets the object and the bytes that Append wrote.
	Row(object T, raw []byte) (Row, error)
}

// Store is a collection on disk. It is a [tarn.ReadStore]: every Apply and Replace is one
// transaction, every read reads the file.
//
// Reads return no error. A row that cannot be read counts as absent, and the store
// records that: the next write removes the damaged file and fails, and the reflector
// fills the new file from the source.
type Store[T any] struct {
	c     *collection
	codec Codec[T]
	table Tabular[T]

	// epoch is the file that was last written to.
	epoch     int
	buf       []byte
	positions tarn.Positions
	// ahead has room for states of a history that are encoded before they are written.
	ahead []encodedState
	// filling says that a first state has begun to be filled, and is not shown yet.
	filling bool
	// unwritten holds the keys whose objects could not be encoded: until each is
	// written or deleted, the content is not whole.
	unwritten map[tarn.Key]struct{}
	suspicion suspicion
	// identify returns the uid of an object; nil if the codec does not know it.
	identify func(T) string
}

// NewStore opens a collection of db. It is empty if it is new, or had another identity. A
// store has no history, because it does not learn what it misses: only a [Sink] has one.
func NewStore[T any](db *DB, c Collection, codec Codec[T]) (*Store[T], error) {
	return newStore(db, c, codec, History{})
}

func newStore[T any](db *DB, c Collection, codec Codec[T], history History) (*Store[T], error) {
	if db == nil || codec == nil {
		return nil, fmt.Errorf("sqlite: the store of %s needs a database and a codec", c.Name)
	}
	s := &Store[T]{codec: codec, unwritten: map[tarn.Key]struct{}{}}
	s.c = &collection{Collection: c, db: db, packer: &packer{owner: c.Name, keys: db.keys}}
	s.c.identity = c.Identity + "\n" + codec.Schema()
	if tabular, ok := codec.(Tabular[T]); ok && !db.Encrypted() {
		table := tabular.Table()
		if err := table.validate(c.Name); err != nil {
			return nil, err
		}
		s.c.table, s.table = prepareTable(table), tabular
		s.c.identity += "\n" + strings.Join(table.ddl(c.Name, 0), ";\n")
	}
	if identifier, ok := codec.(Identifier[T]); ok {
		s.identify = identifier.UID
	}
	s.c.history = history
	s.c.seed, s.c.rewriter = s.seed, s.rewriteFrom
	if err := db.add(s.c); err != nil {
		return nil, err
	}
	if err := s.c.finishRewriting(); err != nil {
		s.Release()
		return nil, err
	}
	s.epoch = db.epoch
	return s, nil
}

// Replace sets the content to exactly these items.
func (s *Store[T]) Replace(items []tarn.Item[T], at tarn.Position) error {
	changes := make([]tarn.Change[T], len(items))
	for i, item := range items {
		changes[i] = tarn.Change[T]{Type: tarn.Add, Key: item.Key, Object: item.Object, Version: item.Version}
	}
	var next tarn.Positions
	next.Reset(at)
	return s.finish(batch[T]{changes: changes, all: true, positions: next, lastContact: time.Now()})
}

// Apply makes some changes.
func (s *Store[T]) Apply(changes []tarn.Change[T], at tarn.Position) error {
	all := s.filling // what was filled so far is no state
	next := s.positions.Clone()
	next.Move(at)
	return s.finish(batch[T]{changes: changes, all: all, positions: next, lastContact: time.Now()})
}

// Fill writes a piece of the first state; see [tarn.Filler]. It is on disk, but not
// visible: a collection that has no version and is not whole shows no content.
func (s *Store[T]) Fill(changes []tarn.Change[T], first bool) error {
	s.filling = true
	return s.write(batch[T]{changes: changes, all: first, part: true, lastContact: time.Now()})
}

// Filled makes the filled state the content at a version; see [tarn.Filler].
func (s *Store[T]) Filled(at tarn.Position) error {
	var next tarn.Positions
	next.Reset(at)
	return s.finish(batch[T]{positions: next, lastContact: time.Now()})
}

// finish writes the batch that ends a filling. If that fails, the filling continues.
func (s *Store[T]) finish(b batch[T]) error {
	err := s.write(b)
	if tarn.Taken(err) {
		s.filling, s.positions = false, b.positions
	}
	return err
}

// batch is one transaction.
type batch[T any] struct {
	changes []tarn.Change[T]
	// all says that keys that are not in changes are deleted.
	all bool
	// part says that more batches follow before the content belongs to a version.
	part        bool
	positions   tarn.Positions
	lastContact time.Time
	// gaps are those before the positions. whole holds the keys of all objects, where the
	// changes are the last part of a whole state.
	gaps  []tarn.Gap
	whole map[tarn.Key]struct{}
}

func (s *Store[T]) write(b batch[T]) error {
	if b.all {
		clear(s.unwritten)
	}
	var entries []entry
	var bad tarn.ObjectErrors
	if !s.c.history.on() {
		entries, bad = s.encode(b.changes)
	}
	db := s.c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.usable(); err != nil {
		return err
	}
	if s.c.released {
		return fmt.Errorf("sqlite: the store of %s was released and cannot be written", s.c.Name)
	}
	if err := db.room(); err != nil {
		return err
	}
	if cause := s.suspicion.take(); cause != nil && s.epoch == db.epoch {
		if err := db.rescue(cause); err != nil {
			return err
		}
	}
	if s.epoch != db.epoch && !b.all {
		s.epoch = db.epoch
		return fmt.Errorf("sqlite: %s: %w", s.c.Name, errRebuilt)
	}
	s.epoch = db.epoch
	next := s.c.state
	reached := b.positions
	b.positions = s.c.trusted(reached)
	positions := b.positions.All()
	next.version, next.positions, next.lastContact = b.positions.Oldest(), encodePositions(positions), b.lastContact
	next.incomplete = !complete(positions)
	next.whole = s.whole(b)
	var log *logWrite
	err := db.transact(func(conn *sqlite3.Conn) (err error) {
		if s.c.log == nil {
			return s.c.write(conn, entries, b.all, &next)
		}
		log, bad, err = s.writeLogged(conn, b, &next)
		return err
	})
	if err != nil {
		s.c.bundles = bundles{}
	}
	if err != nil && s.c.log != nil {
		s.c.log.recent.forgetAll()
	}
	if damaged(err) {
		if err := db.rescue(err); err != nil {
			return err
		}
		s.epoch = db.epoch
		return fmt.Errorf("sqlite: %s: %w: %w", s.c.Name, errRebuilt, err)
	}
	if err != nil {
		return db.explain("write "+s.c.Name+" to", err)
	}
	s.c.state = next
	if !b.part {
		s.c.trustMoved(reached)
	}
	if log != nil {
		log.committed()
	}
	s.c.publishState()
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// whole reports whether the content is whole after a batch, once its objects are encoded.
func (s *Store[T]) whole(b batch[T]) bool { return !b.part && len(s.unwritten) == 0 }

// Release allows another store to open the collection; see [tarn.Releaser]. This one can
// be read until then.
func (s *Store[T]) Release() {
	db := s.c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if s.c.released {
		return
	}
	s.c.released = true
	if db.collections[s.c.Name] == s.c {
		delete(db.collections, s.c.Name)
	}
	if db.writer != nil {
		s.c.stmts.close()
	}
}

// encode turns changes into entries: one for each key, with its last state. It leaves out
// an object that cannot be encoded.
func (s *Store[T]) encode(changes []tarn.Change[T]) (entries []entry, bad tarn.ObjectErrors) {
	last := make(map[tarn.Key]int, len(changes))
	for i, c := range changes {
		last[c.Key] = i
	}
	entries = make([]entry, 0, len(last))
	for i, c := range changes {
		if last[c.Key] != i {
			continue
		}
		e := entry{key: c.Key, gone: c.Type == tarn.Delete}
		delete(s.unwritten, c.Key)
		if !e.gone {
			if err := s.fill(&e, c.Object); err != nil {
				e = entry{key: c.Key, gone: true}
				s.unwritten[tarn.Key(strings.Clone(string(c.Key)))] = struct{}{}
				bad = append(bad, tarn.BadObject{Key: c.Key, Version: c.Version, Err: fmt.Errorf("cannot be written to disk: %w", err)})
			}
		}
		entries = append(entries, e)
	}
	return entries, bad
}

// fill encodes an object.
func (s *Store[T]) fill(e *entry, object T) error {
	if err := s.encodeObject(e, object); err != nil {
		return err
	}
	return s.packObject(e)
}

// encodeObject encodes an object to s.buf, and makes its row.
func (s *Store[T]) encodeObject(e *entry, object T) (err error) {
	defer recoverTo(&err)
	if s.buf, err = s.codec.Append(s.buf[:0], object); err != nil {
		return err
	}
	if s.table != nil {
		if e.row, err = s.table.Row(object, s.buf); err != nil {
			return err
		}
		if e.parts, err = s.c.table.check(e.row); err != nil {
			return err
		}
	}
	return nil
}

// packObject packs what encodeObject has encoded.
func (s *Store[T]) packObject(e *entry) (err error) {
	defer recoverTo(&err)
	if s.table != nil {
		e.found = s.c.table.found(s.c.packer.keys.sums, e.row)
	}
	e.body, e.sum, err = s.c.packer.pack(e.key, s.buf)
	return err
}

// recoverTo turns a panic of the codec into an error of the object.
func recoverTo(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("the codec panicked: %v", v)
	}
}
