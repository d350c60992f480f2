package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// requests records the requests of a copy.
type requests struct {
	mu      sync.Mutex
	queries []url.Values
}

// record returns a copy of config whose requests are written down.
func (r *requests) record(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return recorder{r, next}
	})
	return config
}

type recorder struct {
	*requests
	next http.RoundTripper
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.queries = append(r.queries, request.URL.Query())
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}

// beganWithStream says whether the first request was for a stream of initial
// events, and not for a list.
func (r *requests) beganWithStream() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queries) > 0 && r.queries[0].Get("sendInitialEvents") == "true"
}

// count is how many requests there were so far, and since returns those after so many.
func (r *requests) count() int { return len(r.since(0)) }

func (r *requests) since(n int) []url.Values {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.queries[n:])
}
