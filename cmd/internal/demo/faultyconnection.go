package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/faults"
)

// FaultyConnection leads to a healthy server, with faults drawn from a seed:
// connections are refused, cut, garbled and stalled, and answers are late, fail or
// say that the version has expired.
//
// Bytes are changed below TLS, as on a real network: there a garbled byte breaks
// the connection. Above TLS it could change an object, and no client could notice.
//
// Faults hit requests and connections, and a watch without a fault would last for
// many minutes. So watches are also asked to end after half a minute, and no
// connection is used twice. One request in five fails: with a dozen resources
// there is a fault every few seconds, and each resource has the time to recover,
// since the backoff grows while failures follow each other.
type FaultyConnection struct{ wire, answers *faults.Plan }

// NewFaultyConnection draws the faults from a seed.
func NewFaultyConnection(seed uint64) *FaultyConnection {
	return &FaultyConnection{
		wire: faults.New(seed, faults.Mix{
			faults.Refuse: 0.01, faults.Reset: 0.05, faults.Truncate: 0.02, faults.Garble: 0.04, faults.Delay: 0.1,
			// Rare, because a silent watch is given a while, and a list more.
			faults.Stall: 0.01,
		}).Within(faults.Limits{Delay: time.Second, Burst: 2, Bytes: 1 << 20}),
		answers: faults.New(seed, faults.Mix{
			faults.Expire: 0.03, faults.Busy: 0.01, faults.BusyFor: 0.01, faults.Internal: 0.015, faults.Fail: 0.015,
			faults.Hang: 0.005, faults.Delay: 0.1,
		}).Within(faults.Limits{Delay: time.Second, RetryAfter: 2 * time.Second, Hang: 3 * time.Second, Burst: 2}),
	}
}

// Config is a config for the same server, with faults. Initial is how long a watch
// with initial events may last.
func (t *FaultyConnection) Config(good *rest.Config, initial time.Duration) (*rest.Config, error) {
	secure, err := rest.TLSConfigFor(good)
	if err != nil {
		return nil, err
	}
	if secure == nil {
		return nil, fmt.Errorf("demo: %s is not served by TLS, so that garbled bytes could go unnoticed", good.Host)
	}
	wire := &http.Transport{
		DialContext:       faults.Dial((&net.Dialer{Timeout: 10 * time.Second}).DialContext, t.wire, "wire"),
		TLSClientConfig:   secure,
		DisableKeepAlives: true,
	}
	bad := rest.AnonymousClientConfig(good)
	bad.BearerToken = good.BearerToken
	bad.TLSClientConfig = rest.TLSClientConfig{}
	bad.QPS, bad.Burst = good.QPS, good.Burst
	bad.Transport = shortWatches{
		inner:   faults.Transport(wire, t.answers, faults.TransportOptions{Name: "answers", Status: statusOf}),
		initial: initial,
	}
	return bad, nil
}

// End stops all faults.
func (t *FaultyConnection) End() {
	t.wire.End()
	t.answers.End()
}

// Faults is the number of faults so far.
func (t *FaultyConnection) Faults() int { return len(t.wire.History()) + len(t.answers.History()) }

// String lists the faults so far, the most frequent first: 12 reset, 3 busy.
func (t *FaultyConnection) String() string {
	counts := t.wire.History().Counts()
	for kind, n := range t.answers.History().Counts() {
		counts[kind] += n
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b faults.Kind) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, kind := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// statusOf is the Status object that an API server sends with this code.
func statusOf(code int) (contentType string, body []byte) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Message: "injected: " + http.StatusText(code),
	}
	switch code {
	case http.StatusGone:
		status.Reason, status.Message = metav1.StatusReasonExpired, "injected: the resourceVersion is too old"
	case http.StatusTooManyRequests:
		status.Reason = metav1.StatusReasonTooManyRequests
	case http.StatusInternalServerError:
		status.Reason = metav1.StatusReasonInternalError
	case http.StatusServiceUnavailable:
		status.Reason = metav1.StatusReasonServiceUnavailable
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		return "text/plain", []byte(err.Error())
	}
	return "application/json", encoded
}

// shortWatches makes watches end early.
type shortWatches struct {
	inner   http.RoundTripper
	initial time.Duration
}

func (s shortWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("watch") == "" || query.Get("watch") == "false" {
		return s.inner.RoundTrip(r)
	}
	lasts := 30 * time.Second
	if query.Get("sendInitialEvents") == "true" {
		lasts = s.initial
	}
	query.Set("timeoutSeconds", strconv.Itoa(int(lasts.Seconds())))
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return s.inner.RoundTrip(r)
}
