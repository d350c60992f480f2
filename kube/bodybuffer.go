package kube

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

const (
	// blockSize is how much of a body is read into one piece of memory and decoded
	// by one worker. It holds some 25 pods: enough that the hand-over costs
	// nothing, and so little that all blocks in flight fit a processor's cache.
	blockSize = 256 << 10
	// firstBlock is the block of a quiet stream.
	firstBlock = 8 << 10
)

// block is memory that objects are cut out of. It is reused when nobody holds it
// any more.
type block struct {
	data  []byte
	holds atomic.Int32
}

var blocks = sync.Pool{New: func() any { return &block{data: make([]byte, blockSize)} }}

func newBlock(size int) *block {
	b := &block{}
	if size == blockSize {
		b = blocks.Get().(*block)
	} else {
		b.data = make([]byte, size)
	}
	b.holds.Store(1)
	return b
}

func (b *block) hold() { b.holds.Add(1) }

func (b *block) release() {
	if b.holds.Add(-1) == 0 && len(b.data) == blockSize {
		blocks.Put(b)
	}
}

// bodyBuffer is a window over a response body. Bytes are added at its end as they
// arrive, and consumed from its start.
//
// Consumed bytes stay in place for as long as their user holds the block. So each
// byte of the body is copied once, from the connection; only an object that crosses
// the end of a block is copied again.
type bodyBuffer struct {
	in    io.Reader
	block *block
	// at and end bound the window in the block; base is the offset in the body at
	// which the block begins.
	at, end int
	base    int64
	// size is the size of the next block: it grows while the connection fills
	// blocks, and falls back to least after several small reads in a row.
	size, least, smallReads int
	err                     error
	// onRead is called before a read that may wait, onLeave before the buffer moves
	// to another block.
	onRead, onLeave func()
}

func newBodyBuffer(in io.Reader, size int) *bodyBuffer {
	return &bodyBuffer{in: in, block: newBlock(size), size: size, least: size, onRead: func() {}, onLeave: func() {}}
}

// close releases the last block. Users of consumed bytes keep their holds.
func (f *bodyBuffer) close() {
	f.block.release()
	f.block = nil
}

func (f *bodyBuffer) window() []byte { return f.block.data[f.at:f.end] }

// offset is where in the body the window begins.
func (f *bodyBuffer) offset() int64 { return f.base + int64(f.at) }

// take consumes n bytes, which must be in the window.
func (f *bodyBuffer) take(n int) []byte {
	b := f.block.data[f.at : f.at+n : f.at+n]
	f.at += n
	return b
}

// need waits until the window has n bytes. Memory grows as they arrive: a length
// that is only claimed costs nothing.
func (f *bodyBuffer) need(n int) error {
	for f.end-f.at < n {
		if err := f.fill(min(n, 2*(f.end-f.at)+blockSize)); err != nil {
			return err
		}
	}
	return nil
}

// fill waits for more bytes, with room for a window of n. At the end of the body
// it fails with io.EOF.
func (f *bodyBuffer) fill(n int) error {
	if f.err != nil {
		return f.err
	}
	idle := f.at == f.end && len(f.block.data) > f.size
	if idle || f.at+n > len(f.block.data) || f.end == len(f.block.data) {
		f.makeRoom(n)
	}
	f.onRead()
	for range 100 {
		room := f.block.data[f.end:]
		got, err := f.in.Read(room)
		f.end += got
		f.err = err
		if got > 0 {
			f.adapt(got, got == len(room))
			return nil
		}
		if err != nil {
			return err
		}
	}
	f.err = io.ErrNoProgress
	return f.err
}

// adapt adjusts the size of later blocks to what a read brought.
func (f *bodyBuffer) adapt(got int, full bool) {
	switch {
	case full:
		f.size, f.smallReads = min(2*f.size, blockSize), 0
	case got >= f.least/2:
		f.smallReads = 0
	default:
		if f.smallReads++; f.smallReads >= 16 {
			f.size = f.least
		}
	}
}

// shrink returns to small blocks.
func (f *bodyBuffer) shrink() { f.size = f.least }

// makeRoom moves the window to where it can grow: to the start of its block if
// nobody else holds that, else to a new one.
func (f *bodyBuffer) makeRoom(n int) {
	rest := f.window()
	n = max(n, len(rest)+1)
	if f.at > 0 && n <= len(f.block.data) && len(f.block.data) <= f.size && f.block.holds.Load() == 1 {
		copy(f.block.data, rest)
	} else {
		size := f.size
		if n > size || 2*len(rest) > size {
			size = max(n, 2*len(rest), blockSize)
		}
		next := newBlock(size)
		copy(next.data, rest)
		f.onLeave()
		f.block.release()
		f.block = next
	}
	f.base += int64(f.at)
	f.at, f.end = 0, len(rest)
}

// skip consumes n bytes, however many, without keeping them.
func (f *bodyBuffer) skip(n int64) error {
	for {
		have := min(n, int64(f.end-f.at))
		f.at += int(have)
		if n -= have; n == 0 {
			return nil
		}
		if err := f.fill(1); err != nil {
			return err
		}
	}
}

// A malformedError says that the body is not in the expected format.
type malformedError struct {
	at   int64
	what string
}

func (e *malformedError) Error() string { return fmt.Sprintf("at byte %d: %s", e.at, e.what) }

func (f *bodyBuffer) malformed(format string, args ...any) error {
	return &malformedError{f.offset(), fmt.Sprintf(format, args...)}
}
