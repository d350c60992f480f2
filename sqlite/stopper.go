package sqlite

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// maxGrace is the longest time between the end of ctx and a stop by force.
const maxGrace = time.Second

// errStopped says that a computation was stopped by force.
var errStopped = errors.New("stopped by force")

// readGuarded calls do with a connection that reads a file, which others may write
// meanwhile, and stops it by force if it runs for longer than grace after the end of ctx.
// It turns a panic of SQLite into an error.
func readGuarded(ctx context.Context, path string, grace time.Duration, do func(*sqlite3.Conn, *stopper) error) error {
	err := tryGuarded(ctx, path, false, grace, do)
	if errors.Is(err, errNoSharedMemory) {
		err = tryGuarded(ctx, path, true, grace, do)
	}
	return err
}

func tryGuarded(ctx context.Context, path string, immutable bool, grace time.Duration, do func(*sqlite3.Conn, *stopper) error) error {
	files := openedFiles.enter()
	defer files.leave()
	conn, err := connectReading(path, immutable, "&vfs="+guardedVFS+"&"+files.parameter())
	if err != nil {
		return err
	}
	s := newStopper(conn)
	end := s.watch(ctx, grace)
	err = withoutFaults(func() error {
		if !immutable {
			if err := probeReading(conn, path); err != nil {
				return err
			}
		}
		return do(conn, s)
	})
	if stopped := end(); stopped {
		files.close() // before the memory is released: a part of it is a mapped file
		s.memory.release()
		return errStopped
	}
	return first(err, closeAll(conn))
}

// withoutFaults turns a panic, and a fault in protected memory, into an error.
func withoutFaults(do func() error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return withoutPanic(do)
}

// stopper stops the computation of a connection.
//
// SQLite checks between the steps of a program whether to stop, and a step can be long:
// it sorts three million rows in one, and a thousand calls of a function on values of
// megabytes may lie between two checks. So if a computation has not stopped when the
// grace is over, the stopper protects the memory that SQLite works in. The next access
// faults, the fault becomes a panic of the goroutine, and the files of the connection are
// closed. For the file this equals a killed process, which SQLite is made for.
//
// Why not bound every step instead: values would have to be shorter than objects are,
// and programs shorter than useful statements. Why not another process: a library
// cannot start one of a program that it does not know. Why not wait until the computation
// ends: it would keep its processor, its memory and its turn.
//
// The library does not expose its memory, so it is read from private fields; a test
// detects when they change. Where there is no such memory, as on Windows, a statement
// stops at the next check.
type stopper struct {
	memory sqliteMemory
	// computing is held while a sink reads SQLite's memory, which must not be protected
	// then.
	computing sync.Mutex
}

func newStopper(conn *sqlite3.Conn) *stopper { return &stopper{memory: memoryOf(conn)} }

// watch waits for the end of ctx, and protects the memory if end is not called within
// the grace after that. end reports whether it did; then the connection must not be used
// again.
func (s *stopper) watch(ctx context.Context, grace time.Duration) (end func() (stopped bool)) {
	over, watched, taken := make(chan struct{}), make(chan struct{}), false
	cancel := context.AfterFunc(ctx, func() {
		defer close(watched)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C:
			s.computing.Lock()
			defer s.computing.Unlock()
			taken = s.memory.protect()
		}
	})
	return func() bool {
		close(over)
		if !cancel() {
			<-watched
		}
		return taken
	}
}

// holdMemory calls a function that reads SQLite's memory, which is not protected
// meanwhile.
func (s *stopper) holdMemory(call func() error) error {
	s.computing.Lock()
	defer s.computing.Unlock()
	return call()
}
