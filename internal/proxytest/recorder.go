package proxytest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
)

// Recorder remembers the requests that pass through a transport, to compare those of two
// clients.
type Recorder struct {
	mu   sync.Mutex
	seen []string
}

// Transport is a function that answers requests.
type Transport func(*http.Request) (*http.Response, error)

func (f Transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// randomTimeout is what client-go and Tarn choose at random in a watch.
var randomTimeout = regexp.MustCompile(`(timeout|timeoutSeconds)=[^&]+`)

// Wrap returns a transport whose requests are remembered.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper {
	return Transport(func(req *http.Request) (*http.Response, error) {
		header := req.Header.Clone()
		header.Del("Traceparent")
		r.mu.Lock()
		r.seen = append(r.seen, fmt.Sprint(req.Method, " ", req.URL.Path, "?", randomTimeout.ReplaceAllString(req.URL.RawQuery, "$1=random"), " ", header))
		r.mu.Unlock()
		return next.RoundTrip(req)
	})
}

// Requests returns method, address and header of each request, sorted. Random timeouts are
// left out.
func (r *Recorder) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.seen))
}
