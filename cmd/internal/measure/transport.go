package measure

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// transports records how the answers about a resource arrived: by which protocol, encrypted
// or not, compressed or not. Each of these costs processor time, and server and client decide
// on them together.
type transports struct {
	mu   sync.Mutex
	seen string
}

// watching returns a copy of cfg whose answers about a resource are noted.
func (t *transports) watching(cfg *rest.Config, resource string) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return recordingTransport{next, t, "/" + resource} })
	return cfg
}

// last describes the last answer that was not an error, empty if there was none.
func (t *transports) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen
}

type recordingTransport struct {
	next http.RoundTripper
	into *transports
	path string
}

func (n recordingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.next.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusOK && strings.HasSuffix(r.URL.Path, n.path) {
		n.into.note(resp, r.URL.Query().Get("watch"))
	}
	return resp, err
}

// note describes an answer. Compression matters for a list, so a later watch does not replace
// the description of the list.
func (t *transports) note(resp *http.Response, watch string) {
	text := resp.Proto
	if resp.TLS != nil {
		text += ", TLS"
	}
	switch {
	case resp.Uncompressed || resp.Header.Get("Content-Encoding") == "gzip":
		text += ", gzip"
	case watch != "":
		text += ", a stream"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == "" || watch == "" {
		t.seen = text
	}
}
