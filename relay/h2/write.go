package h2

import (
	"encoding/binary"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// buffers are those of connections that have nothing to write.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// mostRounds is how often a goroutine writes for others before another one does.
const mostRounds = 8

// fewBytes are worth waiting until the streams that are ready to run have added theirs: an
// event of 500 bytes that goes to many streams then costs half. Larger ones gain nothing.
const fewBytes = 4 << 10

// flush writes what is in out, unless another goroutine does already: that one writes it
// too. What others put into out meanwhile is written as well, in larger and larger pieces
// if they are many.
func (c *conn) flush() {
	if c.writing || len(c.out) == 0 {
		return
	}
	c.writing = true
	if len(c.out) < fewBytes {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	for round := 0; len(c.out) > 0 && c.err == nil; round++ {
		if round == mostRounds {
			c.running.Go(c.flushRest)
			return
		}
		data := c.out
		c.out, c.replies = nil, 0
		c.signal()
		if limit := time.Now().Add(writePatience); limit.After(c.deadline) && !c.draining {
			c.deadline = limit.Add(writePatience / 8) // serves the next writes too
			_ = c.net.SetWriteDeadline(c.deadline)
		}
		c.mu.Unlock()
		_, err := c.net.Write(data)
		if cap(data) <= 2*mostOut {
			data = data[:0]
			buffers.Put(&data)
		}
		c.mu.Lock()
		if err != nil {
			c.failAll(err)
			_ = c.net.Close()
		}
	}
	c.writing = false
	c.signal()
}

// flushApart has another goroutine write what is in out.
func (c *conn) flushApart() {
	if !c.writing && len(c.out) > 0 {
		c.writing = true
		c.running.Go(c.flushRest)
	}
}

// flushRest begins a flush, or continues one.
func (c *conn) flushRest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	c.flush()
}

func appendUint32(b []byte, n uint32) []byte { return binary.BigEndian.AppendUint32(b, n) }

// putHead puts the head of a frame into out.
func (c *conn) putHead(size int, kind http2.FrameType, flags http2.Flags, stream uint32) {
	if c.out == nil {
		c.out = *buffers.Get().(*[]byte)
	}
	c.out = append(c.out, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	c.out = appendUint32(c.out, stream)
}

func (c *conn) putReset(stream uint32, code http2.ErrCode) {
	c.putHead(4, http2.FrameRSTStream, 0, stream)
	c.out = appendUint32(c.out, uint32(code))
}

func (c *conn) putGoAway(code http2.ErrCode) {
	c.putHead(8, http2.FrameGoAway, 0, 0)
	c.out = appendUint32(appendUint32(c.out, c.newest), uint32(code))
}

func (c *conn) putWindow(stream uint32, n int) {
	c.putHead(4, http2.FrameWindowUpdate, 0, stream)
	c.out = appendUint32(c.out, uint32(n))
}

func (c *conn) putSettings() {
	settings := []http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
		{ID: http2.SettingMaxFrameSize, Val: frameSize},
		{ID: http2.SettingMaxHeaderListSize, Val: headerBytes},
		{ID: http2.SettingInitialWindowSize, Val: uploadWindow},
	}
	c.putHead(6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		c.out = binary.BigEndian.AppendUint16(c.out, uint16(s.ID))
		c.out = appendUint32(c.out, s.Val)
	}
}

// putHeaders puts the fields that encode writes into out. The encoder has a state, so the
// frames must be in the order in which they were encoded.
func (c *conn) putHeaders(stream uint32, last bool, encode func(*hpack.Encoder)) {
	c.encoded.Reset()
	encode(c.encoder)
	var flags http2.Flags
	if last {
		flags = http2.FlagHeadersEndStream
	}
	kind := http2.FrameHeaders
	for first := true; first || c.encoded.Len() > 0; first = false {
		part := c.encoded.Next(c.frame)
		if c.encoded.Len() == 0 {
			flags |= http2.FlagHeadersEndHeaders
		}
		c.putHead(len(part), kind, flags, stream)
		c.out = append(c.out, part...)
		kind, flags = http2.FrameContinuation, 0
	}
}
