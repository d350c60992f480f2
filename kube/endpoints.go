package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Endpoints returns a config for several servers of one cluster: relays, and the API
// server itself. Any client can be made of it.
//
//	cfg, err := kube.Endpoints(relayA, relayB, server)
//
// A request goes to the first endpoint that works. If that endpoint cannot be reached, or
// answers that it is not available, the next one gets the request at once, and the first
// one gets no requests for a second, then two, up to half a minute. The same happens to
// an endpoint that had at least five seconds for a request and did not answer before the
// request was cancelled. Because relays have the versions of their origin, a watch that
// ends resumes at another endpoint, without a list.
//
// A write is repeated only if it cannot have arrived. Each config has its own
// credentials, TLS settings and address; rate limits, timeout and user agent are those
// of the first. The last one should be the API server itself: copies on disk are known
// by its address, and stay valid when relays come or go.
//
// Upgraded connections, as those of exec and port-forward, are made without this config's
// transport by most clients: give these the config of the server.
func Endpoints(configs ...*rest.Config) (*rest.Config, error) {
	if len(configs) == 0 {
		return nil, errors.New("kube: no endpoints: give the config of at least one server")
	}
	group := &endpointGroup{}
	for _, cfg := range configs {
		e, err := newEndpoint(cfg)
		if err != nil {
			return nil, err
		}
		group.list = append(group.list, e)
		group.server = serverOf(cfg)
	}
	cfg := rest.AnonymousClientConfig(configs[0])
	cfg.Host, cfg.APIPath = group.list[0].base.String(), ""
	cfg.TLSClientConfig, cfg.Dial, cfg.Proxy = rest.TLSClientConfig{}, nil, nil
	cfg.Transport = group
	return cfg, nil
}

// EndpointHealth is the state of one of the [Endpoints] of a client.
type EndpointHealth struct {
	// Host is the address of the endpoint.
	Host string
	// Failures counts its failures since its last answer; 0 if it works.
	Failures int
	// Err is the last failure, and RetryAt the time until which other endpoints are tried
	// first.
	Err     error
	RetryAt time.Time
}

// HealthOfEndpoints returns the health of the endpoints of a config that [Endpoints]
// made, in its order. It is nil for any other config.
func HealthOfEndpoints(cfg *rest.Config) []EndpointHealth {
	group, ok := cfg.Transport.(*endpointGroup)
	if !ok {
		return nil
	}
	health := make([]EndpointHealth, len(group.list))
	for i, e := range group.list {
		health[i] = e.health()
	}
	return health
}

// endpointDialTimeout is shorter than client-go's half a minute: there are others to ask.
const endpointDialTimeout = 5 * time.Second

// endpointPatience is how long an endpoint may take to answer a request that is then given
// up. One that had longer has failed: it may be frozen, and would be asked for ever.
const endpointPatience = 5 * time.Second

// endpointDial is one for the process, as [bufferedDial] is.
var endpointDial = &transport.DialHolder{Dial: dialWithin(endpointDialTimeout)}

func newEndpoint(cfg *rest.Config) (*endpoint, error) {
	if cfg == nil {
		return nil, errors.New("kube: the config of an endpoint is nil")
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("kube: the address of the endpoint %q is not usable: %w", cfg.Host, err)
	}
	client, err := httpClientWith(cfg, endpointDial)
	if err != nil {
		return nil, fmt.Errorf("kube: cannot connect to the endpoint %s: %w", cfg.Host, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return &endpoint{base: base, next: client.Transport}, nil
}

// endpointGroup is a round tripper that sends each request to the first of several
// endpoints that answers.
//
// Why not a load balancer's round robin: the copy behind each endpoint is a bit older or
// newer than the others, and a client that asks them in turn sees time go back and forth.
type endpointGroup struct {
	list []*endpoint
	// server identifies the cluster, see [serverOf].
	server string
}

func (g *endpointGroup) RoundTrip(req *http.Request) (*http.Response, error) {
	attempt := attempt{group: g, req: req}
	for _, e := range g.inOrder() {
		if resp, done := attempt.at(e); done {
			return resp, nil
		}
		if !attempt.repeatable {
			break
		}
	}
	return attempt.result()
}

// CloseIdleConnections closes those of all endpoints; http.Client calls it.
func (g *endpointGroup) CloseIdleConnections() {
	for _, e := range g.list {
		utilnet.CloseIdleConnectionsFor(e.next)
	}
}

// inOrder are all endpoints: first those that work, then those that failed recently.
func (g *endpointGroup) inOrder() []*endpoint {
	now := time.Now()
	order, failed := make([]*endpoint, 0, len(g.list)), []*endpoint(nil)
	for _, e := range g.list {
		if e.take(now) {
			order = append(order, e)
		} else {
			failed = append(failed, e)
		}
	}
	return append(order, failed...)
}

// attempt is one request, on its way from endpoint to endpoint.
type attempt struct {
	group *endpointGroup
	req   *http.Request
	tried int
	// repeatable says that the request can be sent to another endpoint.
	repeatable bool
	// answer is that of an endpoint that is not available. It may be due to the endpoint
	// or to the request: an API that is down is down at all of them.
	answer      *http.Response
	unavailable []*endpoint
	errs        []error
}

// at sends the request to an endpoint, and reports whether the answer is final.
func (a *attempt) at(e *endpoint) (*http.Response, bool) {
	req, err := e.addressed(a.req, a.group.list[0].base.Path, a.tried > 0)
	if err != nil {
		a.errs, a.repeatable = append(a.errs, err), false
		return nil, false
	}
	a.tried++
	began := time.Now()
	resp, err := e.next.RoundTrip(req)
	a.repeatable = canRepeat(a.req, err)
	switch {
	case err != nil:
		waited := time.Since(began)
		if a.req.Context().Err() == nil {
			e.failed(err)
		} else if waited >= endpointPatience {
			e.failed(fmt.Errorf("no answer within %v: %w", waited.Round(time.Second), err))
		}
		a.errs = append(a.errs, fmt.Errorf("%s: %w", e.base.Host, err))
		return nil, false
	case isUnavailable(resp.StatusCode):
		a.unavailable = append(a.unavailable, e)
		a.discard()
		a.answer = resp
		return nil, false
	}
	e.answered()
	for _, other := range a.unavailable {
		other.failed(fmt.Errorf("it answers %s, and %s answers well", a.answer.Status, e.base.Host))
	}
	a.discard()
	if isWatch(a.req) {
		resp.Body = &watchBody{ReadCloser: resp.Body, ctx: a.req.Context()}
	}
	return resp, true
}

func isWatch(req *http.Request) bool {
	watch, _ := strconv.ParseBool(req.URL.Query().Get("watch"))
	return watch && req.Method == http.MethodGet && req.Header.Get("Upgrade") == ""
}

// watchBody ends with io.ErrUnexpectedEOF if the connection breaks, whatever its error is.
// client-go resumes a watch that ends with it at the version that it has. It treats an
// error that it does not know as one of the server, and lists; errors of HTTP/2 are such.
type watchBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.ctx.Err() == nil {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (a *attempt) discard() {
	if a.answer != nil {
		a.answer.Body.Close()
	}
}

// result is what the caller gets if no endpoint answered well.
func (a *attempt) result() (*http.Response, error) {
	switch {
	case a.answer != nil:
		return a.answer, nil
	case a.req.Context().Err() != nil || len(a.errs) == 1:
		return nil, a.errs[len(a.errs)-1]
	default:
		return nil, fmt.Errorf("none of the %d endpoints can be reached: %w", len(a.errs), errors.Join(a.errs...))
	}
}

// isUnavailable recognises the answers of a server that is starting or stopping, and
// of a proxy without one.
func isUnavailable(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// canRepeat says whether a request that ended so can be sent again: if it changes
// nothing, or did not arrive.
func canRepeat(req *http.Request, err error) bool {
	if req.Context().Err() != nil {
		return false
	}
	reads := (req.Method == http.MethodGet || req.Method == http.MethodHead) && req.Header.Get("Upgrade") == ""
	return reads || isDialError(err)
}

// addressed is the request for this endpoint. prefix is the path of the group's config.
func (e *endpoint) addressed(req *http.Request, prefix string, again bool) (*http.Request, error) {
	to := req.Clone(req.Context())
	if again && req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return nil, fmt.Errorf("%s %s: its body cannot be sent to another endpoint", req.Method, req.URL.Path)
		}
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		to.Body = body
	}
	to.Host = ""
	to.URL = rebased(req.URL, prefix, e.base)
	return to, nil
}

// rebased moves an address from the path prefix of one server to that of another.
func rebased(from *url.URL, prefix string, base *url.URL) *url.URL {
	to := *from
	to.Scheme, to.Host = base.Scheme, base.Host
	if prefix != base.Path {
		to.Path = base.Path + strings.TrimPrefix(from.Path, prefix)
		if from.RawPath != "" {
			to.RawPath = base.EscapedPath() + strings.TrimPrefix(from.RawPath, prefix)
		}
	}
	return &to
}
