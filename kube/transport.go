package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/internal/usercall"
)

// headers are the response headers that client-go's REST client does not pass on.
type headers struct {
	// limit is how long the answer may take, with its body; 0 means no limit. The time begins
	// when the request is sent, after the wait for the rate limit.
	limit time.Duration

	contentType, retryAfter string
	// host is that of the server that answered; see [Endpoints].
	host string
}

// complete adds the Retry-After header to the error of the response. client-go does
// so only if the body is not a Status; otherwise it reads the header when it
// retries, which we leave to the engine.
func (t *headers) complete(err error) error {
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

type headersKey struct{}

// maxErrorBody bounds how much of an error's body is read. A Status is seldom
// longer than a kilobyte; a longer body is not from an API server.
const maxErrorBody = 1 << 20

// headerRecorder is a round tripper below the REST client. It copies response
// headers to the [headers] in the request's context, keeps its time limit, and
// decompresses gzip.
//
// Why not leave gzip to net/http: it uses the standard library's decompressor,
// which takes about twice the CPU of this one for a list.
type headerRecorder struct{ next http.RoundTripper }

// withHeaderRecorder returns a copy of client that records headers.
func withHeaderRecorder(client *http.Client) *http.Client {
	c := *client
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	c.Transport = headerRecorder{next}
	return &c
}

func (t headerRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	recorded, _ := req.Context().Value(headersKey{}).(*headers)
	if recorded == nil || recorded.limit <= 0 {
		return t.roundTrip(req, recorded)
	}
	ctx, cancel := context.WithTimeout(req.Context(), recorded.limit)
	resp, err := t.roundTrip(req.WithContext(ctx), recorded)
	if err != nil || resp == nil || resp.Body == nil {
		cancel()
		return resp, err
	}
	resp.Body = cancelledBody{resp.Body, cancel}
	return resp, nil
}

// cancelledBody is a body that cancels the context of its request when it is closed.
type cancelledBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b cancelledBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// closeBody closes the body of an answer. A panic of the program's transport ends at most the
// process, as utilruntime is configured, and not what reads the collection.
func closeBody(ctx context.Context, body io.Closer) {
	var err error // it does not matter: nothing more is read
	defer usercall.Recover(ctx, "transport", &err)
	err = body.Close()
}

func (t headerRecorder) roundTrip(req *http.Request, recorded *headers) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp == nil {
		return resp, err // net/http makes an error of a nil response
	}
	if recorded != nil {
		recorded.contentType = resp.Header.Get("Content-Type")
		recorded.retryAfter = resp.Header.Get("Retry-After")
		recorded.host = req.URL.Host
		if resp.Request != nil {
			recorded.host = resp.Request.URL.Host
		}
	}
	if resp.Body == nil {
		return resp, nil // net/http gives it an empty one
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

// WrappedRoundTripper lets client-go's helpers reach the wrapped transport.
func (t headerRecorder) WrappedRoundTripper() http.RoundTripper { return t.next }

// gunzipped decompresses a body. It reads the gzip header at the first Read, so
// that a response without a body does not fail.
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
