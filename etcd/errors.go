package etcd

import (
	"context"
	"errors"
	"fmt"

	"github.com/tarnproject/tarn"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// explain says what failed, and why, as the engine classifies it.
func (s *Source[V]) explain(doing string, revision int64, err error) error {
	at := ""
	if revision > 0 {
		at = fmt.Sprintf(" at revision %d", revision)
	}
	return tarn.Because(reasonOf(err), 0, fmt.Errorf("etcd: %s %s%s: %w", doing, s.prefix, at, err))
}

func reasonOf(err error) tarn.Reason {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return tarn.ReasonUnknown
	case errors.Is(err, rpctypes.ErrCompacted):
		return tarn.ReasonExpired
	case errors.Is(err, rpctypes.ErrFutureRev):
		return tarn.ReasonTooNew
	case errors.Is(err, rpctypes.ErrTooManyRequests), errors.Is(err, rpctypes.ErrNoSpace):
		return tarn.ReasonBusy
	case errors.Is(err, rpctypes.ErrNoLeader), errors.Is(err, rpctypes.ErrLeaderChanged),
		errors.Is(err, rpctypes.ErrTimeout), errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail),
		errors.Is(err, rpctypes.ErrTimeoutDueToConnectionLost):
		return tarn.ReasonRefused // the version is not to blame
	}
	switch code(err) {
	case codes.Unavailable:
		return tarn.ReasonRefused
	case codes.ResourceExhausted:
		return tarn.ReasonBusy
	case codes.Internal:
		return tarn.ReasonInternal
	}
	return tarn.ReasonUnknown
}

// code is that of an error of gRPC, also behind the client's own type.
func code(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}
