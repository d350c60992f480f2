package sqlite

import (
	"runtime"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// walkRows is how many rows are decoded at a time: enough to pay for the switch between
// goroutines. A walk begins with firstRows, because the caller may want only the first.
const walkRows, firstRows = 32, 4

// walk yields objects in the order in which their rows are read. Other cores decode some
// batches ahead: a row takes longer to decode than to read.
type walk[T any] struct {
	store *Store[T]
	yield func(tarn.Key, T) bool
	// size is the number of rows of the next batch, ahead the largest number of batches.
	size, ahead int
	next        *walked[T]
	// pending batches are being decoded, spare ones can be reused.
	pending, spare []*walked[T]
}

// walked is a batch.
type walked[T any] struct {
	rows rows
	buf  []byte
	decoded[T]
	done chan struct{}
}

func newWalk[T any](s *Store[T], yield func(tarn.Key, T) bool) *walk[T] {
	return &walk[T]{store: s, yield: yield, size: firstRows, ahead: runtime.GOMAXPROCS(0) - 1, next: &walked[T]{}}
}

// add takes a row of key, sum and body.
func (w *walk[T]) add(row *sqlite3.Stmt) error {
	w.next.rows.add(row)
	if len(w.next.rows.keys) < w.size {
		return nil
	}
	w.size = min(2*w.size, walkRows)
	return w.decode()
}

// decode starts to decode a batch, and yields the oldest one if there are enough.
func (w *walk[T]) decode() error {
	b := w.next
	b.done = make(chan struct{})
	w.next = &walked[T]{}
	if n := len(w.spare); n > 0 {
		w.next, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	w.pending = append(w.pending, b)
	work := func() {
		defer close(b.done)
		if b.buf == nil {
			b.buf = make([]byte, 0, 64<<10)
		}
		b.decoded = w.store.decodeRows(&b.rows, b.buf, make([]tarn.Change[T], 0, len(b.rows.keys)))
	}
	if w.ahead == 0 {
		work()
	} else {
		go work() // wait and give wait for it
	}
	if len(w.pending) <= w.ahead {
		return nil
	}
	return w.give()
}

// give yields the oldest batch.
func (w *walk[T]) give() error {
	b := w.pending[0]
	<-b.done
	w.pending = w.pending[1:]
	for _, item := range b.items {
		if !w.yield(item.Key, item.Object) {
			return errEnough
		}
	}
	if b.err != nil {
		return b.err
	}
	b.rows.reset()
	w.spare = append(w.spare, b)
	return nil
}

// end yields the remaining batches.
func (w *walk[T]) end() error {
	if err := w.decode(); err != nil {
		return err
	}
	for len(w.pending) > 0 {
		if err := w.give(); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for the goroutines that still decode after the caller has stopped.
func (w *walk[T]) wait() {
	for _, b := range w.pending {
		<-b.done
	}
}
