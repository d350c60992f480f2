package kube

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"
	"time"
)

// frame is one undecoded event of a stream.
type frame struct {
	// raw is in block, which the frame holds. For a frame that is too long it is
	// the start, in memory of its own.
	raw   []byte
	block *block
	at    int64
	// size is the length of a frame that is too long, else 0.
	size int64
	// open and close bound the only object or array in a JSON frame; both are 0 if
	// it has none or several.
	open, close int
	// foreign says that the object belongs to another shard, so that only its version matters.
	foreign bool
}

func (f frame) release() {
	if f.block != nil {
		f.block.release()
	}
}

// nextFrame cuts the next frame out of a stream. It fails with io.EOF if the stream
// ends between frames.
func nextFrame(f *bodyBuffer, m media, limit int) (frame, error) {
	if m == mediaProtobuf {
		return nextProtobufFrame(f, limit)
	}
	return nextJSONFrame(f, limit)
}

// nextProtobufFrame reads a big-endian length of four bytes, and that many bytes.
func nextProtobufFrame(f *bodyBuffer, limit int) (frame, error) {
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
		return frame{}, f.malformed("%q instead of the length of an event", f.window()[:4])
	}
	f.at += 4
	if n <= int64(limit) {
		if err := f.need(int(n)); err != nil {
			return frame{}, unexpected(err)
		}
		return f.frame(int(n)), nil
	}
	if err := f.need(int(min(n, excerptSize))); err != nil {
		return frame{}, unexpected(err)
	}
	long := f.longFrame()
	long.size = n
	return long, unexpected(f.skip(n))
}

// nextJSONFrame reads an object; there may be space between objects.
func nextJSONFrame(f *bodyBuffer, limit int) (frame, error) {
	c, err := f.jsonToken()
	if err != nil {
		return frame{}, err
	}
	if c != '{' {
		return frame{}, f.malformed("%q instead of an event", f.window()[:min(16, f.end-f.at)])
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
	cut := f.frame(s.Pos)
	if s.Children == 1 {
		cut.open, cut.close = s.Open, s.Close
	}
	return cut, nil
}

// interrupted fails if another event begins before this one has ended: otherwise an
// event with a lost bracket would swallow all that follow. Servers write an event
// on one line; and a line that begins with an object is part of another only after
// a comma, a colon or a bracket, since there is no newline in a string.
func (f *bodyBuffer) interrupted(seen int) error {
	data := f.window()
	for from := max(seen-1, 0); ; {
		i := bytes.Index(data[from:], []byte("\n{"))
		if i < 0 {
			return nil
		}
		before := bytes.TrimRight(data[:from+i], jsonSpace)
		if !bytes.ContainsAny(before[len(before)-1:], ",:[") {
			return f.malformed("an event does not end before another begins, %d bytes later", from+i+1)
		}
		from += i + 1
	}
}

func (f *bodyBuffer) frame(n int) frame {
	at := f.offset()
	f.block.hold()
	return frame{block: f.block, at: at, raw: f.take(n)}
}

func (f *bodyBuffer) longFrame() frame {
	return frame{at: f.offset(), raw: bytes.Clone(f.window()[:min(excerptSize, f.end-f.at)])}
}

// inbox holds the frames that are read and not yet consumed.
//
// Why not a channel: its bound would count frames and not bytes, it would hand over
// one frame at a time, and a reader could not see how many wait.
type inbox struct {
	mu     sync.Mutex
	frames []frame
	bytes  int
	// full says that the writer waits until the inbox is half empty: reading much
	// at once costs less than alternating with the reader.
	full bool
	// end is the error that follows the frames, once it is known.
	end error

	// readable and writable wake the reader and the writer. They hold one token: a
	// woken goroutine checks the state itself.
	readable, writable chan struct{}
}

func newInbox() *inbox {
	return &inbox{readable: make(chan struct{}, 1), writable: make(chan struct{}, 1)}
}

// put adds frames as soon as there is room. It returns false if stop ends first;
// then the caller still owns the frames.
func (i *inbox) put(frames []frame, stop <-chan struct{}) bool {
	for {
		i.mu.Lock()
		if i.full = i.bytes >= maxQueuedBytes || len(i.frames) >= maxQueuedFrames; !i.full {
			for _, f := range frames {
				i.bytes += len(f.raw)
			}
			i.frames = append(i.frames, frames...)
			i.mu.Unlock()
			wake(i.readable)
			return true
		}
		i.mu.Unlock()
		select {
		case <-i.writable:
		case <-stop:
			return false
		}
	}
}

// finish sets the error that follows the frames.
func (i *inbox) finish(end error) {
	i.mu.Lock()
	i.end = end
	i.mu.Unlock()
	wake(i.readable)
}

// take moves up to limit frames to the end of into. If there are none it returns
// the end, once that is known.
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
		wake(i.writable)
	}
	return into, nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// frameReader says how a stream is cut.
type frameReader struct {
	media media
	limit int
	// initial says that the stream begins with the whole collection.
	initial bool
	// shard drops the events of other shards; nil drops none.
	shard *streamFilter
}

// read cuts a stream into frames until it ends or stop does. It puts what has
// arrived into the inbox before it waits for more. Initial events come a block at a
// time: nobody can use them before the last one, so waking the reader for each is a
// waste. They wait only briefly, because they also show that the connection is
// alive.
func (i *inbox) read(f *bodyBuffer, r frameReader, stop <-chan struct{}) error {
	initial := r.initial
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
		if !initial || time.Since(last) > initialEventDelay {
			deliver()
		}
	}
	f.onLeave = deliver
	defer deliver()
	begins := func(raw []byte) {
		if initial && !bytes.HasPrefix(raw, added[r.media]) {
			initial = false
			f.shrink() // now events come one by one
		}
	}
	for !stopped {
		if size := r.shard.foreignLine(f, r.media, r.limit); size > 0 {
			begins(f.take(size))
			continue
		}
		next, err := nextFrame(f, r.media, r.limit)
		if err != nil {
			next.release()
			return err
		}
		begins(next.raw)
		r.shard.learnLines(f, r.media, next)
		if r.shard.drops(r.media, &next) {
			next.release()
			continue
		}
		ready = append(ready, next)
	}
	return io.EOF
}

// added is how an initial event begins.
var added = [...][]byte{
	mediaJSON:     []byte(`{"type":"ADDED"`),
	mediaProtobuf: []byte("\x0a\x05ADDED"),
}
