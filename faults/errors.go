package faults

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/tarnproject/tarn"
)

// ErrInjected is wrapped by every injected error, so that a test can distinguish
// them from real ones.
var ErrInjected = errors.New("injected")

func injected(err error) error { return fmt.Errorf("%w: %w", ErrInjected, err) }

var (
	errRefused  = injected(syscall.ECONNREFUSED)
	errReset    = injected(syscall.ECONNRESET)
	errTimedOut = injected(syscall.ETIMEDOUT)
)

// failure is the error for a kind of fault. Only the busy kinds use after.
func failure(kind Kind, after time.Duration) error {
	switch kind {
	case Refuse:
		return tarn.Because(tarn.ReasonRefused, 0, errRefused)
	case Expire, CutExpire:
		return tarn.Because(tarn.ReasonExpired, 0, injected(errors.New("410: the version is gone")))
	case ExpireToken:
		return tarn.Because(tarn.ReasonExpired, 0, injected(errors.New("410: the continue token has expired")))
	case TooNew:
		return tarn.Because(tarn.ReasonTooNew, 0, injected(errors.New("504: the version is too large")))
	case Busy, BusyFor, CutBusy:
		return tarn.Because(tarn.ReasonBusy, after, injected(errors.New("429: too many requests")))
	case Internal, CutInternal:
		return tarn.Because(tarn.ReasonInternal, 0, injected(errors.New("500: internal error")))
	case NoWatchList:
		return tarn.Because(tarn.ReasonNoWatchList, 0, injected(errors.New("422: sendInitialEvents is not known here")))
	case NoList:
		return injected(tarn.ErrNoList)
	case CutEnd:
		return io.EOF
	case CutFail, CutList:
		return errReset
	default:
		return injected(errors.New("503: service unavailable"))
	}
}

// retryAfter draws the delay that a busy source requests, in whole seconds as in
// the header of that name.
func (d *injector) retryAfter() time.Duration {
	return max(upTo(d.Rand, d.request.plan.limits.RetryAfter).Round(time.Second), time.Second)
}
