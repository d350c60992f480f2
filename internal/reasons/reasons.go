package reasons

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tarnproject/tarn"
)

// Classify wraps an error with its reason. lost recognises a broken connection, which
// depends on how the caller reads the wire.
func Classify(err error, lost func(error) bool) error {
	if err == nil {
		return nil
	}
	var after time.Duration
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		after = time.Duration(seconds) * time.Second
	}
	reason := tarn.ReasonUnknown
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		reason = tarn.ReasonExpired
	case isTooNew(err):
		// The server suggests a retry after a second, which is not needed: a
		// consistent read is possible at once.
		reason, after = tarn.ReasonTooNew, 0
	case utilnet.IsConnectionRefused(err):
		reason = tarn.ReasonRefused
	case apierrors.IsTooManyRequests(err):
		reason = tarn.ReasonBusy
	case lost(err):
		reason = tarn.ReasonLost
	case apierrors.IsInternalError(err):
		reason = tarn.ReasonInternal
	case after == 0:
		return err
	}
	return tarn.Because(reason, after, err)
}

// isTooNew recognises the answer to a version that the server has not reached.
// Servers before 1.19 have it only in the message.
func isTooNew(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsTimeout(err) || !errors.As(err, &status) {
		return false
	}
	const words = "Too large resource version"
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Message == words {
				return true
			}
		}
	}
	return strings.Contains(status.Status().Message, words)
}

// RefusesWatchList recognises the answer of a server that does not support, or does not
// allow, a watch with initial events.
func RefusesWatchList(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
