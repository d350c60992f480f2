package cache

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/internal/reasons"
)

// classify finds the reason of an API error, as far as the engine acts on it. The
// error itself stays reachable.
func classify(err error) error { return reasons.Classify(err, isLost) }

// isLost recognises a connection that broke under a watch. client-go puts that in
// the same words as an event that could not be decoded; only the message behind
// them tells the two apart, and what is not recognised costs no more than a list.
func isLost(err error) bool {
	if !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && !apierrors.HasStatusCause(err, clientWatchDecoding) {
		return false
	}
	for _, words := range []string{"connection lost", "connection force closed", "connection reset", "broken pipe", "use of closed network connection", "i/o timeout", "unexpected EOF", "GOAWAY"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// clientWatchDecoding is the cause that client-go's watches give to errors of the
// stream.
const clientWatchDecoding metav1.CauseType = "ClientWatchDecoding"

// requestError is an error of the API with what the reader can do about it.
type requestError struct {
	verb, description, advice string
	err                       error
}

func (e *requestError) Error() string {
	s := fmt.Sprintf("failed to %s %s: %v", e.verb, e.description, e.err)
	if e.advice != "" {
		s += "; " + e.advice
	}
	return s
}

func (e *requestError) Unwrap() error { return e.err }

// advise adds what the reader can do about an error.
func (s *source) advise(verb string, err error) error {
	e := &requestError{verb: verb, description: s.description, err: err}
	switch {
	case apierrors.IsForbidden(err):
		e.advice = "grant list and watch on it, or ask for fewer namespaces"
	case apierrors.IsUnauthorized(err):
		e.advice = "the credentials are not accepted (any more)"
	case apierrors.IsNotFound(err):
		e.advice = "the server does not serve this resource: is the CRD installed, the API version right?"
	}
	return e
}

// rawWatchError is a watch's error as client-go passes it on: bare. Handlers have
// been written that compare it.
func rawWatchError(err error) error {
	if e, ok := errors.AsType[*requestError](err); ok && e.verb == "watch" {
		return e.err
	}
	if e, ok := errors.AsType[watchError](err); ok {
		return e.shown
	}
	return err
}
