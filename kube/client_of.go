package kube

import (
	"errors"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube/wire"
)

// ClientOf returns a client that makes the requests of a REST client, such as that of a
// clientset:
//
//	own, ok := clientset.CoreV1().RESTClient().(*rest.RESTClient)
//
// Requests have its address, connections, credentials, rate limit and warning handler, and
// accept the formats that it accepts, except for CBOR. So a server cannot tell them from
// requests of the clientset. If a program changes own.Client or its fields later, as tests do with
// its Transport, later requests follow.
//
// Two things differ from [NewClient] with the config of the clientset. Reads of connections
// are buffered as in the clientset. And a copy on disk identifies the server by its address
// alone, because a REST client does not reveal its certificate authority.
func ClientOf(own *rest.RESTClient, opts ...ClientOption) (*Client, error) {
	if own == nil || own.Get().URL().Host == "" {
		return nil, errors.New("kube: the REST client is nil, or has no address: take one from a clientset, or use NewClient with a config")
	}
	var s clientSettings
	for _, o := range opts {
		o(&s)
	}
	if s.pool == nil {
		s.pool = wire.NewPool()
	}
	c := &Client{
		rest:         copyOf(own),
		direct:       s.direct,
		pool:         s.pool,
		media:        mediaPolicy{protobuf: true, json: true},
		ofRESTClient: true,
		server:       strings.TrimSuffix(own.Get().AbsPath("/").URL().String(), "/"),
		jsonOnly:     map[schema.GroupVersionResource]bool{},
	}
	if s.http == nil {
		s.http, c.own = connectionsOf(own), own
	}
	c.rest.Client = withHeaderRecorder(s.http)
	return c, nil
}

// DirectRequests makes the requests of [ClientOf] those of code that uses the REST client
// itself, such as client-go's NewListWatchFromClient: at the path that the REST client has,
// whatever group and version a collection names. The requests of a typed client over it,
// which ClientOf makes otherwise, ask for protobuf if the config names no format, and limit
// the time of each request.
func DirectRequests() ClientOption {
	return func(s *clientSettings) { s.direct = true }
}

// copyOf copies a REST client, to give the copy another transport. The warning handler and
// the formats of a REST client cannot be read, so a new one could not be made to equal it.
// Everything that is copied is fixed when a REST client is made, except for the mark that the
// server refuses CBOR, which only write requests set.
func copyOf(own *rest.RESTClient) *rest.RESTClient {
	c := &rest.RESTClient{}
	reflect.ValueOf(c).Elem().Set(reflect.ValueOf(own).Elem())
	return c
}

// requests is the REST client for the next request. With [ClientOf] its HTTP client has the timeout,
// the cookies and the redirects that the program's has now. Why not the program's HTTP client
// itself: its transport would have to be replaced, for all other requests too.
func (c *Client) requests() *rest.RESTClient {
	if c.own == nil {
		return c.rest
	}
	now := copyOf(c.rest)
	now.Client = withHeaderRecorder(connectionsOf(c.own))
	return now
}

// connectionsOf is an HTTP client with the settings of a REST client's, and its transport.
func connectionsOf(own *rest.RESTClient) *http.Client {
	c := *httpClientOf(own)
	c.Transport = currentTransport{own}
	return &c
}

// httpClientOf is the HTTP client by which a REST client makes its requests.
func httpClientOf(own *rest.RESTClient) *http.Client {
	if own.Client == nil {
		return http.DefaultClient
	}
	return own.Client
}

// currentTransport sends each request through the transport that a REST client has at that time.
type currentTransport struct{ of *rest.RESTClient }

func (t currentTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	accepted := req.Header.Get("Accept")
	if readable := withoutCBOR(accepted); readable != accepted {
		req = req.Clone(req.Context())
		req.Header.Set("Accept", readable)
	}
	return t.WrappedRoundTripper().RoundTrip(req)
}

// WrappedRoundTripper lets client-go's helpers reach the wrapped transport.
func (t currentTransport) WrappedRoundTripper() http.RoundTripper {
	if next := httpClientOf(t.of).Transport; next != nil {
		return next
	}
	return http.DefaultTransport
}

// withoutCBOR removes CBOR from an Accept header, because it cannot be read here.
func withoutCBOR(accepted string) string {
	if !strings.Contains(accepted, "cbor") {
		return accepted
	}
	var readable []string
	for clause := range strings.SplitSeq(accepted, ",") {
		if !strings.Contains(clause, "cbor") {
			readable = append(readable, strings.TrimSpace(clause))
		}
	}
	if len(readable) == 0 {
		return runtime.ContentTypeJSON
	}
	return strings.Join(readable, ",")
}
