package kube

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

const (
	// blockSize is how much of a body is read into one piece of memory and decoded
	// by one worker. It holds some 25 pods: enough that handing it over costs
	// nothing, little enough that all blocks in flight fit a processor's cache.
	blockSize = 256 << 10
	// firstBlock is what a quiet stream holds on to.
	firstBlock = 8 << 10
)

// block is memory that objects are cut out of. It is used again once nobody holds
// it any more.
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

// feed is a body as those see it who cut it into objects: a window of bytes that
// grows at its end as they arrive and is consumed from its start.
//
// What was taken from the window stays where it is for as long as its taker holds
// the block. So a byte of the body is copied once, from the connection, but for
// those of the objects that do not end in the block in which they begin.
type feed struct {
	in    io.Reader
	block *block
	// at and end bound the window in the block; base is the offset in the body at
	// which the block begins.
	at, end int
	base    int64
	// size is that of the next block: it grows while the connection fills them, and
	// falls back to least when calm reads in a row brought little.
	size, least, calm int
	err               error
	// onRead is called before bytes are waited for, onLeave before another block
	// takes over.
	onRead, onLeave func()
}

func newFeed(in io.Reader, size int) *feed {
	return &feed{in: in, block: newBlock(size), size: size, least: size, onRead: func() {}, onLeave: func() {}}
}

// close gives the last block back. What was taken stays with its takers.
func (f *feed) close() {
	f.block.release()
	f.block = nil
}

func (f *feed) window() []byte { return f.block.data[f.at:f.end] }

// offset is where in the body the window begins.
func (f *feed) offset() int64 { return f.base + int64(f.at) }

// take consumes n bytes, which must be in the window.
func (f *feed) take(n int) []byte {
	b := f.block.data[f.at : f.at+n : f.at+n]
	f.at += n
	return b
}

// need waits until the window has n bytes. Room is made as they arrive: a length
// that is only claimed costs nothing.
func (f *feed) need(n int) error {
	for f.end-f.at < n {
		if err := f.fill(min(n, 2*(f.end-f.at)+blockSize)); err != nil {
			return err
		}
	}
	return nil
}

// fill waits for more bytes, with room for a window of n. At the end of the body
// it fails with io.EOF.
func (f *feed) fill(n int) error {
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

// adapt learns from a read how much memory the next ones deserve.
func (f *feed) adapt(got int, full bool) {
	switch {
	case full:
		f.size, f.calm = min(2*f.size, blockSize), 0
	case got >= f.least/2:
		f.calm = 0
	default:
		if f.calm++; f.calm >= 16 {
			f.size = f.least
		}
	}
}

// quiet expects little from now on.
func (f *feed) quiet() { f.size = f.least }

// makeRoom moves the window to where it can grow: to the start of its block, if
// nobody else has a hold on that, else to a new one.
func (f *feed) makeRoom(n int) {
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

// skip consumes n bytes, however many they are, without keeping them.
func (f *feed) skip(n int64) error {
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

// A garbledError says that what arrived is not what it should be.
type garbledError struct {
	at   int64
	what string
}

func (e *garbledError) Error() string { return fmt.Sprintf("at byte %d: %s", e.at, e.what) }

func (f *feed) garbled(format string, args ...any) error {
	return &garbledError{f.offset(), fmt.Sprintf(format, args...)}
}
