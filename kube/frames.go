package kube

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"
	"time"
)

// frame is one event as it stands in a stream.
type frame struct {
	// raw is in block, on which the frame has a hold. Of a frame that is too long
	// it is the start, in memory of its own.
	raw   []byte
	block *block
	at    int64
	// size is the length of a frame that is too long, else 0.
	size int64
	// open and close bound the only object or array in a JSON frame; both are 0 if
	// there is none or there are several.
	open, close int
}

func (f frame) release() {
	if f.block != nil {
		f.block.release()
	}
}

// nextFrame cuts the next frame out of a stream. It fails with io.EOF if the
// stream ends where a frame would begin.
func nextFrame(f *feed, m media, limit int) (frame, error) {
	if m == mediaProtobuf {
		return nextProtobufFrame(f, limit)
	}
	return nextJSONFrame(f, limit)
}

// nextProtobufFrame reads a length of four bytes, the highest first, and that many
// bytes.
func nextProtobufFrame(f *feed, limit int) (frame, error) {
	if f.at == f.end {
		if err := f.fill(4); err != nil {
			return frame{}, err
		}
	}
	if err := f.need(4); err != nil {
		return frame{}, unexpected(err)
	}
	n := int64(binary.BigEndian.Uint32(f.window()))
	if n >= garbageFrame {
		return frame{}, f.garbled("%q instead of the length of an event", f.window()[:4])
	}
	f.at += 4
	if n <= int64(limit) {
		if err := f.need(int(n)); err != nil {
			return frame{}, unexpected(err)
		}
		return f.frame(int(n)), nil
	}
	if err := f.need(int(min(n, peekSize))); err != nil {
		return frame{}, unexpected(err)
	}
	long := f.longFrame()
	long.size = n
	return long, unexpected(f.skip(n))
}

// nextJSONFrame reads an object; between objects there may be space.
func nextJSONFrame(f *feed, limit int) (frame, error) {
	c, err := f.jsonToken()
	if err != nil {
		return frame{}, err
	}
	if c != '{' {
		return frame{}, f.garbled("%q instead of an event", f.window()[:min(16, f.end-f.at)])
	}
	s, tooLong, err := f.jsonValueUnless(limit, f.interrupted)
	if err != nil {
		return frame{}, err
	}
	if tooLong {
		long := f.longFrame()
		long.size, err = f.skipJSON(s)
		return long, err
	}
	cut := f.frame(s.pos)
	if s.children == 1 {
		cut.open, cut.close = s.open, s.close
	}
	return cut, nil
}

// interrupted fails if another event begins before this one has ended, which a
// lost bracket would else have swallow all that follow. Servers write an event on
// a line; and a line that begins with an object is part of another only after a
// comma, a colon or a bracket, since there is no newline in a string.
func (f *feed) interrupted(seen int) error {
	data := f.window()
	for from := max(seen-1, 0); ; {
		i := bytes.Index(data[from:], []byte("\n{"))
		if i < 0 {
			return nil
		}
		before := bytes.TrimRight(data[:from+i], jsonSpace)
		if !bytes.ContainsAny(before[len(before)-1:], ",:[") {
			return f.garbled("an event that does not end before another begins, %d bytes on", from+i+1)
		}
		from += i + 1
	}
}

func (f *feed) frame(n int) frame {
	at := f.offset()
	f.block.hold()
	return frame{block: f.block, at: at, raw: f.take(n)}
}

func (f *feed) longFrame() frame {
	return frame{at: f.offset(), raw: bytes.Clone(f.window()[:min(peekSize, f.end-f.at)])}
}

// inbox holds the frames that were read and not yet asked for.
//
// Why not a channel: its bound would count frames and not bytes, one would be
// handed over at a time, and a reader that finds many could not tell.
type inbox struct {
	mu     sync.Mutex
	frames []frame
	bytes  int
	// full says that the writer waits until half of what there may be is left: to
	// read much in one go costs less than to take turns with the reader.
	full bool
	// end is what follows the frames, once that is known.
	end error

	// news and room wake the reader and the writer. They hold one token: who is
	// woken looks for himself.
	news, room chan struct{}
}

func newInbox() *inbox {
	return &inbox{news: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put adds frames as soon as there is room, and says no if stop ends first; then
// the frames are still the caller's.
func (i *inbox) put(frames []frame, stop <-chan struct{}) bool {
	for {
		i.mu.Lock()
		if i.full = i.bytes >= maxQueuedBytes || len(i.frames) >= maxQueuedFrames; !i.full {
			for _, f := range frames {
				i.bytes += len(f.raw)
			}
			i.frames = append(i.frames, frames...)
			i.mu.Unlock()
			wake(i.news)
			return true
		}
		i.mu.Unlock()
		select {
		case <-i.room:
		case <-stop:
			return false
		}
	}
}

// finish says what follows the frames.
func (i *inbox) finish(end error) {
	i.mu.Lock()
	i.end = end
	i.mu.Unlock()
	wake(i.news)
}

// take moves up to limit frames to the end of into. With none it returns the end,
// if it has come.
func (i *inbox) take(into []frame, limit int) ([]frame, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.frames) == 0 {
		return into, i.end
	}
	n := min(limit, len(i.frames))
	for _, f := range i.frames[:n] {
		i.bytes -= len(f.raw)
	}
	into = append(into, i.frames[:n]...)
	left := copy(i.frames, i.frames[n:])
	clear(i.frames[left:])
	i.frames = i.frames[:left]
	if i.full && i.bytes <= maxQueuedBytes/2 && len(i.frames) <= maxQueuedFrames/2 {
		i.full = false
		wake(i.room)
	}
	return into, nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// read cuts a stream into frames until it ends or stop does. What has arrived is put
// into the inbox before more is waited for, but for initial events, which come a block
// at a time: nobody can use any before their end, so that to wake someone for each is
// for nothing. They do not wait for long, since they are signs of life.
func (i *inbox) read(f *feed, m media, limit int, initial bool, stop <-chan struct{}) error {
	var ready []frame
	stopped, last := false, time.Now()
	deliver := func() {
		if len(ready) == 0 || stopped {
			return
		}
		if stopped = !i.put(ready, stop); stopped {
			for _, f := range ready {
				f.release()
			}
		}
		clear(ready)
		ready, last = ready[:0], time.Now()
	}
	f.onRead = func() {
		if !initial || time.Since(last) > patience {
			deliver()
		}
	}
	f.onLeave = deliver
	defer deliver()
	for !stopped {
		next, err := nextFrame(f, m, limit)
		if err != nil {
			next.release()
			return err
		}
		ready = append(ready, next)
		if initial && !bytes.HasPrefix(next.raw, added[m]) {
			initial = false
			f.quiet() // from here on events come one by one
		}
	}
	return io.EOF
}

// added is how an event begins that may be an initial one.
var added = [...][]byte{
	mediaJSON:     []byte(`{"type":"ADDED"`),
	mediaProtobuf: []byte("\x0a\x05ADDED"),
}
