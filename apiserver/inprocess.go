package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/client-go/rest"
)

// Config is for clients of this server: over the network if it listens, else
// straight into it. They are not slowed down by client-go's own limits.
func (s *Server) Config() *rest.Config {
	config := &rest.Config{Host: "http://tarn.invalid", QPS: -1}
	if s.listener == nil {
		config.Transport = s.transport()
	} else {
		config.Host = s.URL()
		config.TLSClientConfig.CAData = s.authority
	}
	config.BearerToken = s.token()
	return config
}

func (s *Server) transport() http.RoundTripper { return direct{s} }

// direct leads requests to a handler without a socket in between. Each is served
// by a goroutine of its own, which ends with the request's context, or when the
// body of the answer is closed.
type direct struct{ server *Server }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if !d.server.enter() {
		return nil, errors.New("apiserver: the server has been closed")
	}
	ctx, cancel := context.WithCancel(r.Context())
	forget := context.AfterFunc(d.server.ctx, cancel)
	inner := r.Clone(ctx)
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	inner.Host = r.URL.Host
	inner.RequestURI = r.URL.RequestURI()
	reader, writer := io.Pipe()
	w := &pipeWriter{header: http.Header{}, pipe: writer, ready: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer d.server.serving.Done()
		defer forget()
		defer stop()
		defer inner.Body.Close()
		d.server.ServeHTTP(w, inner)
		w.WriteHeader(http.StatusOK)
		writer.Close()
	}()
	select {
	case <-w.ready:
	case <-ctx.Done():
		cancel()
		return nil, context.Cause(ctx)
	}
	length := int64(-1)
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		length = n
	}
	return &http.Response{
		Status: strconv.Itoa(w.code) + " " + http.StatusText(w.code), StatusCode: w.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: length, Request: r,
		Body: &pipeBody{PipeReader: reader, cancel: cancel},
	}, nil
}

// pipeWriter is a response writer into a pipe.
type pipeWriter struct {
	header http.Header
	pipe   *io.PipeWriter
	once   sync.Once
	ready  chan struct{}
	code   int
	sent   http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		close(w.ready)
	})
}

func (w *pipeWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(data)
}

// Flush is there because watches flush; a pipe has nothing to flush.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// pipeBody ends the request when it is closed.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
