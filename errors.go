package tarn

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason classifies the failures of a source by what the reflector does next.
type Reason uint8

const (
	// ReasonUnknown: any other failure. The next attempt begins with a list.
	ReasonUnknown Reason = iota
	// ReasonExpired: the version, or the page token, is no longer available.
	ReasonExpired
	// ReasonTooNew: the source has not reached the version yet.
	ReasonTooNew
	// ReasonRefused: the connection is refused. A retry at the same version is safe.
	ReasonRefused
	// ReasonBusy: the source asks for a pause.
	ReasonBusy
	// ReasonInternal: the source has an internal error.
	ReasonInternal
	// ReasonLost: the connection broke. Earlier events are valid, and a retry at the
	// same version is safe.
	ReasonLost
	// ReasonNoWatchList: the source cannot begin a stream with the whole collection.
	ReasonNoWatchList
)

var reasonNames = [...]string{"failed", "expired", "version too new", "refused", "busy", "internal error", "connection lost", "no watch list"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// sourceError adds a reason to an error of the source's protocol. errors.Is and
// errors.As still find that error, and its text stays the same.
type sourceError struct {
	reason Reason
	after  time.Duration
	err    error
}

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// Because wraps err with its reason. retryAfter is the pause that the source
// asked for, 0 if none.
func Because(reason Reason, retryAfter time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &sourceError{reason: reason, after: retryAfter, err: err}
}

// ReasonOf returns the reason that err was wrapped with, else [ReasonUnknown].
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*sourceError](err); ok {
		return e.reason
	}
	return ReasonUnknown
}

// maxRetryAfter is the longest pause that a source can ask for. Servers ask for
// seconds; a mistaken answer of days must not stop a copy for good.
const maxRetryAfter = 10 * time.Minute

// RetryAfter returns the pause that the source asked for, at most ten minutes, or
// 0 if it asked for none.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*sourceError](err); ok {
		return min(e.after, maxRetryAfter)
	}
	return 0
}

// ObjectErrors names the objects of a batch that a store took only in part. Each
// error says which part is missing. The rest of the batch is written.
type ObjectErrors []BadObject

func (e ObjectErrors) Error() string {
	parts := make([]string, len(e))
	for i, b := range e {
		parts[i] = fmt.Sprintf("%s: %v", b.Key, b.Err)
	}
	return strings.Join(parts, "; ")
}

var (
	// ErrStopped ends the waits of a replica or reflector that was stopped.
	ErrStopped = errors.New("stopped")
	// ErrSectionRemoved ends what waits for a section that was removed; see
	// [Replica.RemoveSection].
	ErrSectionRemoved = errors.New("was removed")
	// ErrOpaqueVersion says that a version is not a number, so that a wait for it
	// would never end.
	ErrOpaqueVersion = errors.New("the version is opaque: it cannot be compared with the one reached")
	// ErrRewound says that the source went back to an older state, as a server
	// restored from a backup does.
	ErrRewound = errors.New("the source went back in time")
	// ErrNoList says that the answer to a list request is not a list.
	ErrNoList = errors.New("the answer is not a list")
	// ErrUndecodable says that an object or event could not be decoded.
	ErrUndecodable = errors.New("cannot be decoded")
	// ErrShortWatch says that a watch ended within a second without an event.
	ErrShortWatch = errors.New("very short watch: it ended within a second and brought nothing")
	// ErrNoInitialEnd says that a stream did not mark the end of its initial
	// events in time.
	ErrNoInitialEnd = errors.New("the stream of initial events did not come to its end")
	// ErrSilent says that a watch delivered neither event nor bookmark within
	// its limit.
	ErrSilent = errors.New("the watch fell silent")
)

// Taken reports whether a store wrote a batch: all of it, or all but the parts that an
// [ObjectErrors] names. Any other error means that it wrote nothing.
func Taken(err error) bool {
	_, some := errors.AsType[ObjectErrors](err)
	return err == nil || some
}
