package sqlite

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// maxGrace is how long a computation whose time is over may go on until it stops by
// itself.
const maxGrace = time.Second

// errStopped says that a computation was stopped by force.
var errStopped = errors.New("stopped by force")

// readGuarded calls do with a connection that reads a file, which others may write
// meanwhile, and ends it by force if it goes on for longer than grace after ctx has
// ended. What SQLite panics with is an error.
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
		files.close() // before the memory goes, part of which is a mapped file
		s.memory.release()
		return errStopped
	}
	return first(err, closeAll(conn))
}

// withoutFaults makes an error of a panic, and of a fault in memory that was taken
// away.
func withoutFaults(do func() error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return withoutPanic(do)
}

// stopper ends what a connection computes.
//
// SQLite asks between the steps of a program whether it should stop, and a step can
// be long: it sorts three million rows in one, and a thousand calls of a function on
// values of megabytes may lie between two questions. So whoever has not stopped when
// the grace is over loses the memory that SQLite works in. The next access to it
// faults, the fault becomes a panic of the goroutine, and what the connection had
// open is closed. To the file this is what a killed process is, which SQLite is made
// for.
//
// Why not bound every step instead: values would have to be shorter than objects are,
// and programs shorter than useful statements. Why not another process: a library
// cannot start one of a program that it does not know. Why not leave the computation
// alone until it ends: it would keep its processor, its memory and its turn.
//
// The library does not give its memory away, so it is read from its private fields; a
// test tells when they have changed. Where there is no such memory, as on Windows, a
// statement stops at the next question.
type stopper struct {
	memory sqliteMemory
	// computing is free while SQLite may lose its memory, and held while a sink reads
	// from it.
	computing sync.Mutex
}

func newStopper(conn *sqlite3.Conn) *stopper { return &stopper{memory: memoryOf(conn)} }

// watch waits for ctx to end, and takes the memory away if end has not been called
// within the grace after that. end says whether that was so; then nothing of the
// connection may be used any more.
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
			taken = s.memory.takeAway()
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

// undisturbed calls what reads SQLite's memory and is not to see it vanish.
func (s *stopper) undisturbed(call func() error) error {
	s.computing.Lock()
	defer s.computing.Unlock()
	return call()
}
