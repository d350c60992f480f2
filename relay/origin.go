package relay

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
)

// hopHeader names the relays that a request has passed.
const hopHeader = "Tarn-Relay-Hops"

// origin passes requests on with the credentials that they came with. For requests in the
// name of a caller, see [onBehalf], it has the relay's own; for others it has none.
type origin struct {
	proxy      *httputil.ReverseProxy
	transports []http.RoundTripper
}

func newOrigin(config *rest.Config, id string, impersonate bool) (*origin, error) {
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.UserAgent = ""
	base, _, err := rest.DefaultServerUrlFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("relay: the origin %q is not a URL: %w", config.Host, err)
	}
	o := &origin{}
	ways := transports{}
	if ways.plain, err = o.connect(anonymous); err != nil {
		return nil, err
	}
	if impersonate {
		if config.Impersonate.UserName != "" {
			return nil, fmt.Errorf("relay: the relay acts as %q at the origin, so it cannot act as its callers; leave out one of them", config.Impersonate.UserName)
		}
		own, err := o.connect(config)
		if err != nil {
			return nil, err
		}
		ways.named = impersonator{own}
	}
	o.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.Host = base.Host
			p.SetXForwarded()
			for name := range p.Out.Header {
				if hasPrefix(name, remoteUser) {
					delete(p.Out.Header, name)
				}
			}
			p.Out.Header.Set(hopHeader, strings.TrimPrefix(p.In.Header.Get(hopHeader)+","+id, ","))
		},
		Transport: ways,
		// The relay itself says how old its content may be.
		ModifyResponse: func(answer *http.Response) error { answer.Header.Del(ageHeader); return nil },
		FlushInterval:  -1, // watches and logs are to arrive as they are written
		ErrorLog:       log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				// The client has gone, or the relay stops. Without an answer it would be 200.
				apiserver.SendError(w, r, apierrors.NewServiceUnavailable("the relay was stopped before the origin had answered, which may have done what it was asked to"))
				return
			}
			apiserver.SendError(w, r, unreachable(base, err))
		},
	}
	return o, nil
}

// connect returns connections with the credentials of a config. An upgraded connection, as
// of exec and port-forward, must be one of HTTP/1.1.
func (o *origin) connect(config *rest.Config) (http.RoundTripper, error) {
	usual, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("relay: cannot connect to %s: %w", config.Host, err)
	}
	bare, err := upgradeTransport(config)
	if err != nil {
		return nil, fmt.Errorf("relay: cannot connect to %s: %w", config.Host, err)
	}
	upgrading, err := rest.HTTPWrappersForConfig(config, bare)
	if err != nil {
		return nil, fmt.Errorf("relay: cannot connect to %s: %w", config.Host, err)
	}
	o.transports = append(o.transports, usual, bare)
	return byUpgrade{usual: usual, upgrading: upgrading}, nil
}

func upgradeTransport(config *rest.Config) (http.RoundTripper, error) {
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	if trust != nil {
		trust.NextProtos = []string{"http/1.1"}
	}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, DialContext: config.Dial,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
	}
	if config.Proxy != nil {
		t.Proxy = config.Proxy
	}
	return t, nil
}

func unreachable(base *url.URL, err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadGateway, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("the relay cannot reach its origin %s: %v; what it has copies of can still be read with a resourceVersion", base.Host, err),
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}}
}

// ServeHTTP passes a request on.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) { o.proxy.ServeHTTP(w, r) }

func (o *origin) close() {
	for _, t := range o.transports {
		utilnet.CloseIdleConnectionsFor(t)
	}
}

// transports has a way to the origin without credentials, and one with the relay's, for
// requests in the name of a caller.
type transports struct{ plain, named http.RoundTripper }

func (t transports) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Value(onBehalf{}) != nil {
		return t.named.RoundTrip(r)
	}
	return t.plain.RoundTrip(r)
}

type byUpgrade struct{ usual, upgrading http.RoundTripper }

func (b byUpgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return b.upgrading.RoundTrip(r)
	}
	return b.usual.RoundTrip(r)
}

// hop marks the relay's own requests, so that one that is its own origin is found out.
type hop struct {
	id string
	// counts returns the counter for the bytes of an answer, nil for none, and note
	// receives the headers of answers.
	counts func(*http.Request) *atomic.Int64
	note   func(header http.Header)
	next   http.RoundTripper
}

func (h hop) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(hopHeader, h.id)
	answer, err := h.next.RoundTrip(r)
	count := h.counts(r)
	if err != nil {
		return nil, err
	}
	h.note(answer.Header)
	if count != nil {
		answer.Body = countedBody{answer.Body, count}
	}
	return answer, nil
}

// WrappedRoundTripper lets client-go find the connections.
func (h hop) WrappedRoundTripper() http.RoundTripper { return h.next }

// checkLoop refuses a request that has been here before.
func (r *Relay) checkLoop(req *http.Request) error {
	for id := range strings.SplitSeq(req.Header.Get(hopHeader), ",") {
		if strings.TrimSpace(id) == r.id {
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusLoopDetected, Reason: metav1.StatusReasonInternalError,
				Message: "the request has passed this relay before: the origins of relays lead in a circle; set the origin of one of them to the API server",
			}}
		}
	}
	return nil
}
