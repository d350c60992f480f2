package kube

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	minEndpointBackoff = time.Second
	maxEndpointBackoff = 30 * time.Second
)

// endpoint is one of several servers of a cluster.
type endpoint struct {
	base *url.URL
	next http.RoundTripper

	mu       sync.Mutex
	failures int
	err      error
	retryAt  time.Time
}

// take reports whether the endpoint works or may be tried again. Of the requests that
// come when a pause ends, one tries it; the others ask it last.
func (e *endpoint) take(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failures == 0 {
		return true
	}
	if now.Before(e.retryAt) {
		return false
	}
	e.retryAt = now.Add(maxEndpointBackoff)
	return true
}

func (e *endpoint) answered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures, e.err, e.retryAt = 0, nil, time.Time{}
}

func (e *endpoint) failed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pause := min(minEndpointBackoff<<min(e.failures, 10), maxEndpointBackoff)
	e.failures++
	e.err = err
	e.retryAt = time.Now().Add(pause - rand.N(pause/4))
}

func (e *endpoint) health() EndpointHealth {
	e.mu.Lock()
	defer e.mu.Unlock()
	return EndpointHealth{Host: e.base.String(), Failures: e.failures, Err: e.err, RetryAt: e.retryAt}
}

// isDialError recognises an error before a connection was made.
func isDialError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
