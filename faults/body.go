package faults

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// body is a response body with faults. One goroutine reads; any may close.
type body struct {
	inner io.ReadCloser
	ctx   context.Context
	wire  *wire
	// broken is what every read after the end returns.
	broken error

	closing sync.Once
	closed  chan struct{}
	err     error
}

func newBody(ctx context.Context, inner io.ReadCloser, w *wire) *body {
	return &body{inner: inner, ctx: ctx, wire: w, closed: make(chan struct{})}
}

func (b *body) Read(p []byte) (int, error) {
	if b.broken != nil {
		return 0, b.broken
	}
	room, end := b.wire.room(len(p))
	if end != "" {
		b.broken = b.breakOff(end)
		return 0, b.broken
	}
	n, err := b.inner.Read(p[:room])
	b.wire.pass(p[:n])
	return n, err
}

// breakOff releases the connection, so that it is not used for another request, and
// returns the error for the reader. A stalled connection is released only when the
// reader closes it.
func (b *body) breakOff(end Kind) error {
	switch end {
	case Stall:
		select {
		case <-b.ctx.Done():
			return context.Cause(b.ctx)
		case <-b.closed:
			return http.ErrBodyReadAfterClose
		}
	case Truncate:
		b.Close()
		return io.EOF
	default:
		b.Close()
		return errReset
	}
}

func (b *body) Close() error {
	b.closing.Do(func() {
		close(b.closed)
		b.err = b.inner.Close()
	})
	return b.err
}
