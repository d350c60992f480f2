package sqlite

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// suspicion is an error that a reader got from the file.
type suspicion struct {
	mu    sync.Mutex
	cause error
}

func (s *suspicion) put(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = err
	}
}

func (s *suspicion) take() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.cause
	s.cause = nil
	return err
}

// failed records and logs a failed read.
func (s *Store[T]) failed(err error) {
	if err == nil || errors.Is(err, errClosed) {
		return
	}
	s.c.db.logEvent(slog.LevelError, "something could not be read from disk", "collection", s.c.Name, "err", err)
	if damaged(err) {
		s.suspicion.put(err)
	}
}

// Get returns the object under key.
func (s *Store[T]) Get(key tarn.Key) (object T, ok bool) {
	s.failed(s.c.db.pool.with(func(r *reader) error {
		return r.query("SELECT sum, body FROM "+s.c.objectsTable()+" WHERE key=?1 AND "+shownIf(s.c.id), func(row *sqlite3.Stmt) (err error) {
			object, err = s.decode(key, sumOf(row.ColumnRawBlob(0)), row.ColumnRawBlob(1), nil)
			ok = err == nil
			return err
		}, string(key))
	}))
	return object, ok
}

// decode decodes the object of a row.
func (s *Store[T]) decode(key tarn.Key, sum Sum, packed, buf []byte) (object T, err error) {
	plain, err := s.c.packer.unpack(key, sum, packed, buf)
	if err != nil {
		return object, err
	}
	return s.decodePlain(plain)
}

// decodePlain decodes the bytes that the codec wrote.
func (s *Store[T]) decodePlain(plain []byte) (object T, err error) {
	defer recoverTo(&err)
	return s.codec.Decode(plain)
}

// All walks one state of the file. Concurrent writes do not affect it.
func (s *Store[T]) All() iter.Seq2[tarn.Key, T] {
	return func(yield func(tarn.Key, T) bool) {
		s.failed(s.c.db.pool.with(func(r *reader) error {
			w := newWalk(s, yield)
			defer w.wait()
			err := r.query("SELECT key, sum, body FROM "+s.c.objectsTable()+" WHERE "+shownIf(s.c.id), w.add)
			if err == nil {
				err = w.end()
			}
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}))
	}
}

// errEnough ends a walk that the caller has stopped.
var errEnough = errors.New("enough")

// Len is the number of objects.
func (s *Store[T]) Len() int {
	if st := s.shown(); st.version != "" || st.whole {
		return int(st.objects)
	}
	return 0
}

// shownIf is the condition under which the content of a collection is visible: there is a
// state, and not only parts of one.
func shownIf(id int64) string {
	return fmt.Sprintf("(SELECT version <> '' OR whole FROM tarn_collections WHERE id = %d)", id)
}

// Version is that of the content.
func (s *Store[T]) Version() tarn.Version { return s.shown().version }

// shown reads the state from the collection's row.
func (s *Store[T]) shown() (shown state) {
	s.failed(s.c.db.pool.with(func(r *reader) error {
		return s.c.readState(r, &shown)
	}))
	return shown
}

func (c *collection) readState(r *reader, into *state) error {
	return r.query("SELECT "+collectionColumns+" FROM tarn_collections WHERE name=?", func(row *sqlite3.Stmt) error {
		found, err := scanCollection(row, c.db.keys)
		*into = found.state
		return err
	}, c.Name)
}
