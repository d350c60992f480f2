package jetstream

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

// reasonOf classifies the errors of NATS.
func reasonOf(err error) tarn.Reason {
	if e, ok := errors.AsType[*jetstream.APIError](err); ok && e.Code >= 500 {
		return tarn.ReasonInternal
	}
	switch {
	case errors.Is(err, context.Canceled):
		return tarn.ReasonUnknown
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse),
		errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrConnectionClosed):
		return tarn.ReasonRefused // the version is not to blame
	case errors.Is(err, jetstream.ErrNoHeartbeat), errors.Is(err, jetstream.ErrOrderedConsumerReset),
		errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConnectionClosed), errors.Is(err, jetstream.ErrServerShutdown):
		return tarn.ReasonLost
	}
	return tarn.ReasonUnknown
}

// noStream says that the bucket is not there.
func noStream(err error) bool {
	e, ok := errors.AsType[*jetstream.APIError](err)
	return ok && e.ErrorCode == jetstream.JSErrCodeStreamNotFound
}
