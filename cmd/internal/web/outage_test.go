package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// outage stands between a mirror and its server.
type outage struct {
	mu sync.Mutex
	// over is closed when the outage ends; nil outside of an outage.
	over chan struct{}
	cut  []context.CancelCauseFunc
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errOutage = errors.New("the network is down")

func (o *outage) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		o.mu.Lock()
		over := o.over
		ctx, cancel := context.WithCancelCause(r.Context())
		o.cut = append(o.cut, cancel)
		o.mu.Unlock()
		if over != nil {
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return nil, errOutage
		}
		response, err := next.RoundTrip(r.WithContext(ctx))
		if err == nil {
			response.Body = &cutBody{response.Body, ctx}
		}
		return response, err
	})
}

// cutBody is a body that returns nothing that was sent after the cut.
type cutBody struct {
	io.ReadCloser
	ctx context.Context
}

func (c *cutBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return n, err
}

// begin ends all connections, and lets no request pass until end.
func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = make(chan struct{})
	for _, cancel := range o.cut {
		cancel(errOutage)
	}
	o.cut = nil
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.over)
	o.over = nil
}
