package h2

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// maxStreams is how many requests of one connection are answered at a time.
	maxStreams = 250
	// mostOut bounds what waits to be written, and mostReplies what waits in it of answers to
	// frames, such as pings.
	mostOut     = 64 << 10
	mostReplies = 64 << 10
	// mostUnread ends the connection. Answers wait for room below mostOut, so that only what
	// follows from the client's own frames comes this far, such as the ends of requests that it
	// has cut off.
	mostUnread = 4 * mostOut
	// uploadWindow is how much of a request's body may be on its way, or wait to be read, and
	// uploadsWindow that of all requests of a connection.
	uploadWindow  = 64<<10 - 1
	uploadsWindow = 1 << 20
	// frameSize is the largest frame that is read, and sent unless the client allows less.
	frameSize = 16 << 10
	// writePatience is how long a client may read nothing at all while something is written.
	writePatience = 2 * time.Minute
	// latePatience is how long a write may still take when the time of the stream is over whose
	// goroutine writes.
	latePatience  = 5 * time.Second
	greetPatience = 10 * time.Second
	headerBytes   = 64 << 10
)

// Configure makes a server speak HTTP/2 by this package. The server must not have
// begun to serve.
//
// It does what net/http does, except for trailers, which it drops, and the options
// of [http.HTTP2Config], which it does not read.
func Configure(server *http.Server) {
	if server.TLSConfig == nil {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	for _, name := range []string{"h2", "http/1.1"} {
		if !slices.Contains(server.TLSConfig.NextProtos, name) {
			server.TLSConfig.NextProtos = append(server.TLSConfig.NextProtos, name)
		}
	}
	all := &conns{open: map[*conn]struct{}{}}
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": all.serve}
	server.RegisterOnShutdown(all.leave)
}

// conns are the connections of a server.
type conns struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// leave has clients go elsewhere with their next requests.
func (a *conns) leave() {
	a.mu.Lock()
	open := slices.Collect(maps.Keys(a.open))
	a.mu.Unlock()
	for _, c := range open {
		c.mu.Lock()
		c.leave()
		c.mu.Unlock()
	}
}

// conn is one connection. mu guards everything but the reading side, which one goroutine has.
type conn struct {
	server  *http.Server
	net     net.Conn
	handler http.Handler
	ctx     context.Context
	cancel  context.CancelFunc
	framer  *http2.Framer
	running sync.WaitGroup

	mu sync.Mutex
	// changed is signalled when the writer stops. waiting counts all who wait, streams included.
	changed sync.Cond
	waiting int
	streams map[uint32]*stream
	newest  uint32
	// handlers counts the running handlers, including those whose stream has ended.
	handlers int
	leaving  bool
	err      error

	// out is what is to be written, nil if nothing is. writing says that a goroutine writes.
	out      []byte
	writing  bool
	deadline time.Time
	// replies is how much of out the reading goroutine has put there.
	replies int
	// draining says that the connection ends when out was written.
	draining bool
	// window is that of the connection, initial that of new streams, frame the largest frame.
	window, initial int64
	frame           int
	// uploads is how much the client may still send.
	uploads int
	encoder *hpack.Encoder
	encoded bytes.Buffer
}

func (a *conns) serve(server *http.Server, with *tls.Conn, handler http.Handler) {
	a.serveConn(server, with, handler)
}

func (a *conns) serveConn(server *http.Server, with net.Conn, handler http.Handler) {
	c := &conn{
		server: server, net: with, handler: handler, streams: map[uint32]*stream{},
		window: 65535, initial: 65535, frame: frameSize, uploads: 65535,
	}
	base := context.Background()
	if h, ok := handler.(interface{ BaseContext() context.Context }); ok {
		base = h.BaseContext()
	}
	c.ctx, c.cancel = context.WithCancel(base)
	c.changed.L = &c.mu
	c.encoder = hpack.NewEncoder(&c.encoded)
	c.framer = http2.NewFramer(nil, bufio.NewReaderSize(with, 4<<10))
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(frameSize)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.framer.MaxHeaderListSize = headerBytes
	a.mu.Lock()
	a.open[c] = struct{}{}
	a.mu.Unlock()
	c.end(c.run())
	a.mu.Lock()
	delete(a.open, c)
	a.mu.Unlock()
	c.running.Wait()
}

// run reads until the connection ends.
func (c *conn) run() error {
	_ = c.net.SetReadDeadline(time.Now().Add(greetPatience))
	preface := make([]byte, len(http2.ClientPreface))
	c.mu.Lock()
	c.putSettings()
	c.giveBack(uploadsWindow - c.uploads)
	c.flush()
	c.mu.Unlock()
	if _, err := io.ReadFull(c.net, preface); err != nil || string(preface) != http2.ClientPreface {
		return errors.New("the client did not begin as HTTP/2 does")
	}
	greeted := false
	for {
		f, err := c.framer.ReadFrame()
		if err == nil && !greeted {
			settings, ok := f.(*http2.SettingsFrame)
			if greeted = ok && !settings.IsAck(); !greeted {
				return http2.ConnectionError(http2.ErrCodeProtocol)
			}
			c.setIdle()
		}
		if err := c.handle(f, err); err != nil {
			return err
		}
	}
}

// handle handles a frame, or why it cannot be read. An error ends the connection.
//
// It never waits until the client reads. The client of net/http, for one, writes and reads under
// one lock: while its upload waits for this server to read, it does not read either. So another
// goroutine writes, and a client that asks for answers and does not read them is cut off.
func (c *conn) handle(f http2.Frame, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	before := len(c.out)
	var broken http2.StreamError
	if errors.As(err, &broken) {
		c.refuse(broken.StreamID, broken.Code)
		err = nil
	} else if err == nil {
		err = c.take(f)
	}
	if err != nil {
		return err
	}
	if c.replies += len(c.out) - before; c.replies > mostReplies || len(c.out) > mostUnread {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	c.flushApart()
	return nil
}

// take handles a frame that was read.
func (c *conn) take(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.takeHeaders(f)
	case *http2.DataFrame:
		return c.takeData(f)
	case *http2.WindowUpdateFrame:
		return c.takeWindow(f)
	case *http2.SettingsFrame:
		return c.takeSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.putHead(len(f.Data), http2.FramePing, http2.FlagPingAck, 0)
			c.out = append(c.out, f.Data[:]...)
		}
	case *http2.RSTStreamFrame:
		if f.StreamID > c.newest || f.StreamID%2 == 0 {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		if s := c.streams[f.StreamID]; s != nil {
			s.fail(http2.StreamError{StreamID: f.StreamID, Code: f.ErrCode})
		}
	case *http2.GoAwayFrame:
		c.leaving = true
		if len(c.streams) == 0 {
			return io.EOF
		}
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			c.putReset(f.StreamID, http2.ErrCodeProtocol)
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

func (c *conn) takeWindow(f *http2.WindowUpdateFrame) error {
	const most = 1<<31 - 1
	s := c.streams[f.StreamID]
	switch {
	case f.StreamID == 0:
		if c.window += int64(f.Increment); c.window > most {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.signal()
	case s != nil:
		if s.window += int64(f.Increment); s.window > most {
			c.putReset(f.StreamID, http2.ErrCodeFlowControl)
			s.fail(http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl})
		}
		s.signal()
	case f.StreamID > c.newest || f.StreamID%2 == 0:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

func (c *conn) takeSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if f.NumSettings() > 100 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingInitialWindowSize:
			grown := int64(s.Val) - c.initial
			c.initial = int64(s.Val)
			for _, open := range c.streams {
				if open.window += grown; open.window > 1<<31-1 {
					return http2.ConnectionError(http2.ErrCodeFlowControl)
				}
			}
		case http2.SettingMaxFrameSize:
			c.frame = min(int(s.Val), frameSize)
		case http2.SettingHeaderTableSize:
			c.encoder.SetMaxDynamicTableSize(min(s.Val, 4096))
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.putHead(0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	c.signal()
	return nil
}

// refuse ends a stream, which may not have begun.
func (c *conn) refuse(id uint32, code http2.ErrCode) {
	if s := c.streams[id]; s != nil {
		s.fail(http2.StreamError{StreamID: id, Code: code})
	}
	c.newest = max(c.newest, id)
	c.putReset(id, code)
}

// signal wakes all who wait: there is room in out, the window of the connection has grown, or
// it has ended.
func (c *conn) signal() {
	if c.waiting == 0 {
		return
	}
	c.changed.Broadcast()
	for _, s := range c.streams {
		s.signal()
	}
}
