package h2

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// stream is one request and its answer. The mutex of the connection guards it.
type stream struct {
	c      *conn
	id     uint32
	cancel context.CancelFunc
	// window is how much the client takes. It may be negative.
	window int64
	err    error
	// changed is signalled when the window grows, a part of the body comes, or the stream
	// ends, and with that of the connection.
	changed sync.Cond
	waiting int
	// late ends the stream. flushing says that its goroutine writes for the connection.
	late     *time.Timer
	flushing bool

	// body is what came of the request's, and was not read yet. received says that all of it
	// came, unread how much was read without being announced.
	body     bytes.Buffer
	closed   bool
	received bool
	upload   int
	unread   int
	// declared is the size that the client has announced, -1 if none.
	declared int64
	// asked says that the client waits to be asked for the body.
	asked bool
}

// takeHeaders begins a request, or ends the body of one.
func (c *conn) takeHeaders(f *http2.MetaHeadersFrame) error {
	if s := c.streams[f.StreamID]; s != nil {
		code := http2.ErrCodeProtocol
		if s.received {
			code = http2.ErrCodeStreamClosed
		}
		if s.received || !f.StreamEnded() {
			c.putReset(f.StreamID, code)
			s.fail(http2.StreamError{StreamID: f.StreamID, Code: code})
			return nil
		}
		return c.endBody(s) // with trailers, which nobody needs
	}
	switch {
	case f.StreamID%2 == 0:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case f.StreamID <= c.newest:
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	}
	c.newest = f.StreamID
	if c.handlers >= 2*maxStreams {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm) // it resets faster than answers end
	}
	if c.leaving || len(c.streams) >= maxStreams {
		c.putReset(f.StreamID, http2.ErrCodeRefusedStream)
		return nil
	}
	if f.HasPriority() && f.Priority.StreamDep == f.StreamID {
		c.putReset(f.StreamID, http2.ErrCodeProtocol)
		return nil
	}
	s := &stream{c: c, id: f.StreamID, window: c.initial, received: f.StreamEnded(), upload: uploadWindow, declared: -1}
	s.changed.L = &c.mu
	request, ok := s.request(f)
	if !ok {
		if s.cancel != nil {
			s.cancel()
		}
		c.putReset(f.StreamID, http2.ErrCodeProtocol)
		return nil
	}
	c.streams[s.id] = s
	c.handlers++
	if len(c.streams) == 1 {
		c.idle()
	}
	w := &response{stream: s, request: request, header: http.Header{}}
	tooLarge := f.Truncated
	c.running.Go(func() { w.serve(tooLarge) })
	return nil
}

// request makes a request of headers; false if they are not one.
func (s *stream) request(f *http2.MetaHeadersFrame) (*http.Request, bool) {
	method, path, scheme := f.PseudoValue("method"), f.PseudoValue("path"), f.PseudoValue("scheme")
	if method == "" || method == http.MethodConnect || path == "" || scheme == "" {
		return nil, false
	}
	header := http.Header{}
	for _, field := range f.RegularFields() {
		switch field.Name {
		case "connection", "proxy-connection", "transfer-encoding", "upgrade", "keep-alive":
			return nil, false
		case "te":
			if field.Value != "trailers" {
				return nil, false
			}
		}
		header.Add(textproto.CanonicalMIMEHeaderKey(field.Name), field.Value)
	}
	if cookies := header["Cookie"]; len(cookies) > 1 {
		header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	to, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, false
	}
	host := f.PseudoValue("authority")
	if host == "" {
		host = header.Get("Host")
	}
	header.Del("Host")
	ctx, cancel := context.WithCancel(s.c.ctx)
	s.cancel = cancel
	r := (&http.Request{
		Method: method, URL: to, RequestURI: path, Host: host, Header: header,
		Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: s.c.net.RemoteAddr().String(),
		Body: http.NoBody,
	}).WithContext(ctx)
	if len(header["Content-Length"]) > 1 {
		return nil, false
	}
	if text := header.Get("Content-Length"); text != "" {
		if s.declared, err = strconv.ParseInt(text, 10, 64); err != nil || s.declared < 0 || s.received && s.declared > 0 {
			return nil, false
		}
		r.ContentLength = s.declared
	}
	if !s.received {
		r.Body = &body{s}
		if s.declared < 0 {
			r.ContentLength = -1
		}
		if strings.EqualFold(header.Get("Expect"), "100-continue") {
			header.Del("Expect")
			s.asked = true
		}
	}
	return r, true
}

// takeData takes a part of a request's body.
func (c *conn) takeData(f *http2.DataFrame) error {
	s, size := c.streams[f.StreamID], int(f.Header().Length)
	if c.uploads -= size; c.uploads < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if s == nil {
		if f.StreamID > c.newest {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.giveBack(size)
		c.putReset(f.StreamID, http2.ErrCodeStreamClosed)
		return nil
	}
	if s.received || s.err != nil {
		c.giveBack(size)
		c.putReset(f.StreamID, http2.ErrCodeStreamClosed)
		s.fail(http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed})
		return nil
	}
	if size > s.upload {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	s.upload -= size
	if s.declared >= 0 {
		s.declared -= int64(len(f.Data()))
		if s.declared < 0 {
			c.giveBack(size)
			c.putReset(s.id, http2.ErrCodeProtocol)
			s.fail(http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol})
			return nil
		}
	}
	if s.closed {
		c.giveBack(size)
	} else {
		s.body.Write(f.Data())
		if padding := size - len(f.Data()); padding > 0 {
			s.upload += padding
			c.putWindow(s.id, padding)
			c.giveBack(padding)
		}
	}
	s.signal()
	if f.StreamEnded() {
		return c.endBody(s)
	}
	return nil
}

// giveBack lets the client send more, after it was read or released.
func (c *conn) giveBack(n int) {
	if n > 0 {
		c.uploads += n
		c.putWindow(0, n)
	}
}

func (c *conn) endBody(s *stream) error {
	s.received = true
	if s.declared > 0 {
		c.putReset(s.id, http2.ErrCodeProtocol)
		s.fail(http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol})
	}
	s.signal()
	return nil
}

func (s *stream) wait() {
	s.waiting++
	s.c.waiting++
	s.changed.Wait()
	s.c.waiting--
	s.waiting--
}

func (s *stream) signal() {
	if s.waiting > 0 {
		s.changed.Broadcast()
	}
}

// fail ends a stream, for its handler too.
func (s *stream) fail(err error) {
	if s.err == nil {
		s.err = err
		s.signal()
	}
	s.cancel()
	s.remove()
}

func (s *stream) remove() {
	if s.c.streams[s.id] == s {
		delete(s.c.streams, s.id)
		if len(s.c.streams) == 0 {
			s.c.idle()
		}
	}
}

// write sends data, and ends the answer with it if it is the last. It waits for windows.
func (s *stream) write(data []byte, last bool) error {
	c := s.c
	for {
		for s.err == nil && (len(c.out) >= mostOut || len(data) > 0 && min(c.window, s.window) <= 0) {
			s.flush()
			if s.err == nil && (len(c.out) >= mostOut || min(c.window, s.window) <= 0) {
				s.wait()
			}
		}
		if s.err != nil {
			return s.err
		}
		n := int(min(int64(len(data)), int64(c.frame), max(0, c.window), max(0, s.window)))
		var flags http2.Flags
		if last && n == len(data) {
			flags = http2.FlagDataEndStream
		}
		c.putHead(n, http2.FrameData, flags, s.id)
		c.out = append(c.out, data[:n]...)
		c.window -= int64(n)
		s.window -= int64(n)
		if data = data[n:]; len(data) == 0 {
			return nil
		}
	}
}

// awaitRoom waits until little waits to be written.
func (s *stream) awaitRoom() error {
	for s.err == nil && len(s.c.out) >= mostOut {
		s.flush()
		if s.err == nil && len(s.c.out) >= mostOut {
			s.wait()
		}
	}
	return s.err
}

// flush writes what is in out, for all streams.
func (s *stream) flush() {
	s.flushing = true
	s.c.flush()
	s.flushing = false
}

// body is that of a request.
type body struct{ *stream }

var errClosedBody = errors.New("the body of the request was closed")

func (b *body) Read(data []byte) (int, error) {
	c := b.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.asked {
		b.asked = false
		b.putStatus(http.StatusContinue, nil, false)
		c.flush()
	}
	for b.body.Len() == 0 && !b.received && b.err == nil && !b.closed {
		b.wait()
	}
	if b.closed {
		return 0, errClosedBody
	}
	if b.body.Len() == 0 {
		if b.err != nil && !b.received {
			return 0, b.err
		}
		return 0, io.EOF
	}
	n, _ := b.body.Read(data) // from memory
	b.unread += n
	if b.unread >= uploadWindow/4 || b.body.Len() == 0 {
		if b.err == nil && !b.received {
			c.putWindow(b.id, b.unread)
			b.upload += b.unread
		}
		c.giveBack(b.unread)
		b.unread = 0
		c.flush()
	}
	return n, nil
}

func (b *body) Close() error {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.closeBody()
	b.c.flush()
	return nil
}

// closeBody releases what was not read, and ends reads that wait.
func (s *stream) closeBody() {
	if s.c.err == nil {
		s.c.giveBack(s.body.Len() + s.unread)
	}
	s.body, s.closed, s.unread = bytes.Buffer{}, true, 0
	s.signal()
}

// setLate ends the stream at a time; never if it is zero.
func (s *stream) setLate(at time.Time) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.late != nil {
		s.late.Stop()
		s.late = nil
	}
	if at.IsZero() {
		return
	}
	expire := func() {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		if s.err != nil || s.c.streams[s.id] != s {
			return
		}
		s.c.putReset(s.id, http2.ErrCodeInternal)
		s.fail(os.ErrDeadlineExceeded)
		if s.flushing && !s.c.draining {
			// If the client reads nothing at all, nobody can be sent anything. Mostly, it only
			// happened that the stream writes for others in this moment.
			s.c.deadline = time.Time{} // for the next write
			_ = s.c.net.SetWriteDeadline(time.Now().Add(latePatience))
		}
	}
	s.late = time.AfterFunc(max(0, time.Until(at)), expire)
}
