package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/reasons"
)

// failed explains a failed request: the verb and the collection, what the server or
// the connection reported, and what the reader can do.
func (s *Source[T]) failed(ctx context.Context, verb string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return classify(s.explain(verb, err))
}

func (s *Source[T]) explain(verb string, err error) error {
	advice := ""
	switch {
	case apierrors.IsForbidden(err):
		advice = fmt.Sprintf("; grant list and watch on %s, or name fewer namespaces", s.collection)
	case apierrors.IsUnauthorized(err):
		advice = "; the credentials are not accepted (any more)"
	case apierrors.IsNotFound(err):
		advice = "; the server does not serve this resource: is the CRD installed, and is the API version right?"
	case refusesMedia(err):
		advice = "; the config allows no other media type: make it accept application/json too"
	case utilnet.IsConnectionRefused(err):
		advice = "; nobody listens there: is the server up, and is the address right?"
	}
	return fmt.Errorf("cannot %s %s: %w%s", verb, s.collection, err, advice)
}

// statusInstead is the error for a successful answer that holds a Status instead of
// a list.
func (s *Source[T]) statusInstead(status *metav1.Status) error {
	if status.Status == metav1.StatusSuccess {
		return fmt.Errorf("%w: the list of %s is a Status: %s", tarn.ErrNoList, s.collection, status.Message)
	}
	return classify(s.explain("list", apierrors.FromObject(status)))
}

// bodyFailed explains why a body could not be read to its end, and where it
// stopped.
func (s *Source[T]) bodyFailed(ctx context.Context, verb string, f *bodyBuffer, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if malformed, ok := errors.AsType[*malformedError](err); ok {
		return fmt.Errorf("the %s of %s is malformed %w; does a proxy change what the server sends?", verb, s.collection, malformed)
	}
	err = fmt.Errorf("the %s of %s was cut off at byte %d: %w", verb, s.collection, f.base+int64(f.end), err)
	if isTimeout(err) {
		return err
	}
	return tarn.Because(tarn.ReasonLost, 0, err)
}

// classify finds the reason of an API error, as far as the engine acts on it. The
// error itself stays reachable.
func classify(err error) error { return reasons.Classify(err, isLost) }

// isLost recognises a connection that broke before the answer came.
func isLost(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err))
}

// isTimeout recognises the end of the config's timeout for a whole request. The
// connection is fine then.
func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
