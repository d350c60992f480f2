package main

import (
	"io"
	"net/http"
	"sync"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// withoutShardSelector removes shard selectors from requests, as an old server does.
func withoutShardSelector(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		q := r.URL.Query()
		q.Del("shardSelector")
		r.URL.RawQuery = q.Encode()
		return next.RoundTrip(r)
	})
}

// pausable is a transport whose answers are not read while it is locked. A read that began
// earlier continues.
type pausable struct{ sync.RWMutex }

func (p *pausable) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil {
			answer.Body = pausableBody{answer.Body, p}
		}
		return answer, err
	})
}

type pausableBody struct {
	io.ReadCloser
	of *pausable
}

func (b pausableBody) Read(p []byte) (int, error) {
	b.of.RLock()
	//lint:ignore SA2001 waiting is the purpose
	b.of.RUnlock()
	return b.ReadCloser.Read(p)
}
