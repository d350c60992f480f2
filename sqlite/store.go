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
	// Decode makes an object of bytes that Append wrote. It does not keep them.
	Decode(raw []byte) (T, error)
	// Schema names how the bytes are to be read: what was written under another
	// one is dropped.
	Schema() string
}

// Tabular is a [Codec] that also shows its objects to SQL.
type Tabular[T any] interface {
	Codec[T]
	Table() Table
	// Row is given the object and what Append wrote of it.
	Row(object T, raw []byte) (Row, error)
}

// Store is a collection on disk. It is a [tarn.ReadStore]: every Apply and Replace
// is one transaction, every read looks into the file.
//
// Reads have no error to return. A row that cannot be read is as good as absent,
// and noted: the next write finds the file damaged, removes it, and says so
// to the reflector, which fills the new one from the source.
type Store[T any] struct {
	c     *collection
	codec Codec[T]
	table Tabular[T]

	// epoch is the file that was last written to.
	epoch     int
	buf       []byte
	positions tarn.Positions
	// filling says that a first state has begun to be filled, and is not shown yet.
	filling bool
	// unwritten are the keys whose objects could not be encoded: until each was
	// written or is gone, the content is not whole.
	unwritten map[tarn.Key]struct{}
	suspicion suspicion
}

// NewStore opens a collection of db, which is empty if it was not there, or was of
// another identity.
func NewStore[T any](db *DB, c Collection, codec Codec[T]) (*Store[T], error) {
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
	if err := db.add(s.c); err != nil {
		return nil, err
	}
	s.epoch = db.epoch
	return s, nil
}

// Replace brings the store to exactly these items.
func (s *Store[T]) Replace(items []tarn.Item[T], at tarn.Position) error {
	changes := make([]tarn.Change[T], len(items))
	for i, item := range items {
		changes[i] = tarn.Change[T]{Type: tarn.Add, Key: item.Key, Object: item.Object, Version: item.Version}
	}
	var next tarn.Positions
	next.Reset(at)
	return s.finish(batch[T]{changes: changes, all: true, positions: next, heard: time.Now()})
}

// Apply brings the store on by some changes.
func (s *Store[T]) Apply(changes []tarn.Change[T], at tarn.Position) error {
	all := s.filling // what was filled so far is no state
	next := s.positions.Clone()
	next.Move(at)
	return s.finish(batch[T]{changes: changes, all: all, positions: next, heard: time.Now()})
}

// Fill takes a piece of the first state; see [tarn.Filler]. It is on disk from then
// on, but nobody sees it: a collection without a version that is not whole has no
// content.
func (s *Store[T]) Fill(changes []tarn.Change[T], first bool) error {
	s.filling = true
	return s.write(batch[T]{changes: changes, all: first, part: true, heard: time.Now()})
}

// Filled shows what was filled as the content at a version; see [tarn.Filler].
func (s *Store[T]) Filled(at tarn.Position) error {
	var next tarn.Positions
	next.Reset(at)
	return s.finish(batch[T]{positions: next, heard: time.Now()})
}

// finish writes what ends a filling. Until that is on disk, it has not ended.
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
	// all says that what is not named is gone.
	all bool
	// part says that more is to come before the content is that of a version.
	part      bool
	positions tarn.Positions
	heard     time.Time
}

func (s *Store[T]) write(b batch[T]) error {
	if b.all {
		clear(s.unwritten)
	}
	entries, bad := s.encode(b.changes)
	db := s.c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.usable(); err != nil {
		return err
	}
	if s.c.released {
		return fmt.Errorf("sqlite: the store of %s was released and is not written any more", s.c.Name)
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
	positions := b.positions.All()
	next.version, next.positions, next.heard = b.positions.Oldest(), encodePositions(positions), b.heard
	next.unsound = !complete(positions)
	next.whole = !b.part && len(s.unwritten) == 0
	err := db.transact(func(conn *sqlite3.Conn) error { return s.c.write(conn, entries, b.all, &next) })
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
	s.c.tell()
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// Release lets another store have the collection; see [tarn.Releaser]. This one
// can be read until then.
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

// encode makes of changes what is to be written: for each key what it comes to in
// the end. An object that cannot be encoded is taken out.
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
				s.unwritten[c.Key] = struct{}{}
				bad = append(bad, tarn.BadObject{Key: c.Key, Version: c.Version, Err: fmt.Errorf("cannot be written to disk: %w", err)})
			}
		}
		entries = append(entries, e)
	}
	return entries, bad
}

// fill encodes an object.
func (s *Store[T]) fill(e *entry, object T) (err error) {
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
