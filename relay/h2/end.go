package h2

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/http2"
)

// end ends everything that the connection does. err says why, and is not nil.
func (c *conn) end(err error) {
	c.mu.Lock()
	var broken http2.ConnectionError
	code := http2.ErrCodeNo
	if errors.As(err, &broken) {
		code = http2.ErrCode(broken)
	}
	if errors.Is(err, http2.ErrFrameTooLarge) {
		code = http2.ErrCodeFrameSize
	}
	if c.err == nil {
		c.putGoAway(code)
		c.failStreams(err)
		c.drain()
	}
	c.failAll(err)
	c.mu.Unlock()
	c.cancel()
	_ = c.net.Close()
}

func (c *conn) failAll(err error) {
	if c.err == nil {
		c.err = err
	}
	c.failStreams(err)
	c.signal()
}

func (c *conn) failStreams(err error) {
	for _, s := range c.streams {
		s.fail(fmt.Errorf("the connection has ended: %w", err))
	}
}

// drain writes what is left in out, which may hold the end of an answer. If another goroutine
// is writing, drain waits for it. A client that does not read has a second.
func (c *conn) drain() {
	c.draining = true
	_ = c.net.SetWriteDeadline(time.Now().Add(time.Second))
	for c.flush(); c.writing && c.err == nil; c.flush() {
		c.waiting++
		c.changed.Wait()
		c.waiting--
	}
}

// leave refuses further requests, and ends the connection after the last answer.
func (c *conn) leave() {
	if c.err != nil || c.leaving {
		return
	}
	c.leaving = true
	c.putGoAway(http2.ErrCodeNo)
	c.flush()
	c.endLast()
}

// endLast ends a connection that is to end, and has no streams.
func (c *conn) endLast() {
	if c.leaving && len(c.streams) == 0 && c.err == nil {
		_ = c.net.SetReadDeadline(time.Unix(1, 0)) // ends the goroutine that reads, and with it the rest
	}
}

// setIdle bounds the time without streams.
func (c *conn) setIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle()
}

func (c *conn) idle() {
	var deadline time.Time
	if c.leaving {
		c.endLast()
		return
	}
	if len(c.streams) == 0 && c.server.IdleTimeout > 0 {
		deadline = time.Now().Add(c.server.IdleTimeout)
	}
	_ = c.net.SetReadDeadline(deadline) // fails if the connection is closed, and so does the next read
}
