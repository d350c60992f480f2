package faults

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// TransportOptions say what a [Transport] cannot know by itself.
type TransportOptions struct {
	// Name tells the transport from others under the same plan; "http" if empty.
	Name string
	// Status gives the body of a failure by its code: 410, 429, 500, 502, 503 or
	// 504. If nil, it is the text of the code.
	Status func(code int) (contentType string, body []byte)
}

// Transport returns a round tripper that behaves like inner, with the faults of the
// plan. It starts no goroutines. Every delay ends with the request's context or
// when the body is closed.
func Transport(inner http.RoundTripper, plan *Plan, opts TransportOptions) http.RoundTripper {
	opts.Name = cmp.Or(opts.Name, "http")
	if opts.Status == nil {
		opts.Status = plainStatus
	}
	return &transport{inner: inner, plan: plan, opts: opts}
}

func plainStatus(code int) (string, []byte) {
	return "text/plain; charset=utf-8", []byte(http.StatusText(code) + "\n")
}

type transport struct {
	inner http.RoundTripper
	plan  *Plan
	opts  TransportOptions
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	r := t.plan.request(t.opts.Name, req.Method+" "+req.URL.RequestURI())
	response, err := t.intercept(req, r)
	if response != nil || err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return response, err
	}
	response, err = t.inner.RoundTrip(req)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	if w := r.wire(); !w.clean() {
		if w.end != nil && w.end.kind == Truncate {
			// A reader would notice the missing bytes by the length.
			response.ContentLength = -1
			response.Header.Del("Content-Length")
		}
		response.Body = newBody(req.Context(), response.Body, w)
	}
	return response, nil
}

// intercept fails or delays the request before it reaches the server, if so drawn.
func (t *transport) intercept(req *http.Request, r *request) (*http.Response, error) {
	if err := r.delay(req.Context()); err != nil {
		return nil, err
	}
	switch kind, after := r.failInBurst(Refuse, Busy, BusyFor, Internal, Fail); kind {
	case "":
	case Refuse:
		return nil, errRefused
	case Busy, BusyFor:
		return t.answer(req, http.StatusTooManyRequests, after), nil
	case Internal:
		return t.answer(req, http.StatusInternalServerError, 0), nil
	default:
		return t.answer(req, gateways[r.number%len(gateways)], 0), nil
	}
	if r.injects(Expire) {
		return t.answer(req, http.StatusGone, 0), nil
	}
	if r.injects(Hang) {
		return nil, t.plan.hang(req.Context())
	}
	return nil, nil
}

// gateways are the codes of a [Fail].
var gateways = [...]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// answer makes a response without asking the server.
func (t *transport) answer(req *http.Request, code int, after time.Duration) *http.Response {
	contentType, body := t.opts.Status(code)
	response := &http.Response{
		Status:     fmt.Sprintf("%d %s", code, http.StatusText(code)),
		StatusCode: code,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {contentType}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
	if after > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(after/time.Second)))
	}
	return response
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.inner.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
