package kube

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/gzip"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tap takes from a response what client-go's REST client does not pass on.
type tap struct{ contentType, retryAfter string }

// complete adds the Retry-After of the response to the error that was made of it.
// client-go does so only if the body is no Status; for others it looks at the
// header itself when it tries again, which we leave to the engine.
func (t *tap) complete(err error) error {
	seconds, bad := strconv.ParseInt(t.retryAfter, 10, 32)
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if bad != nil || seconds <= 0 || !ok {
		return err
	}
	status := &answer.ErrStatus
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	if status.Details.RetryAfterSeconds == 0 {
		status.Details.RetryAfterSeconds = int32(seconds)
	}
	return err
}

type tapKey struct{}

// maxErrorBody is how much is read of the body of an error. A Status is seldom
// longer than a kilobyte; what is longer comes from somewhere else.
const maxErrorBody = 1 << 20

// tapping stands between the REST client and the connections. It notes what
// its headers say in the [tap] that the request's context holds, and unpacks gzip.
//
// Why not leave gzip to net/http: its decompressor is the standard library's,
// which takes about twice the CPU of this one for a list.
type tapping struct{ next http.RoundTripper }

// tapped returns a copy of client that taps.
func tapped(client *http.Client) *http.Client {
	c := *client
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	c.Transport = tapping{next}
	return &c
}

func (t tapping) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	if tap, ok := req.Context().Value(tapKey{}).(*tap); ok {
		tap.contentType = resp.Header.Get("Content-Type")
		tap.retryAfter = resp.Header.Get("Retry-After")
	}
	if resp.Header.Get("Content-Encoding") == "gzip" {
		resp.Body = &gunzipped{packed: resp.Body}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
	}
	if resp.StatusCode >= http.StatusBadRequest {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
	}
	return resp, nil
}

// WrappedRoundTripper lets client-go's helpers look through.
func (t tapping) WrappedRoundTripper() http.RoundTripper { return t.next }

// gunzipped unpacks a body. The packed body's head is read with the first Read
// and not before, so that a response without a body is none of its business.
type gunzipped struct {
	packed io.ReadCloser
	plain  *gzip.Reader
	err    error
}

func (g *gunzipped) Read(p []byte) (int, error) {
	if g.plain == nil && g.err == nil {
		g.plain, g.err = gzip.NewReader(g.packed)
	}
	if g.err != nil {
		return 0, g.err
	}
	return g.plain.Read(p)
}

func (g *gunzipped) Close() error { return g.packed.Close() }
