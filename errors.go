package tarn

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason is why a source failed, as far as it changes what the reflector does
// next.
type Reason uint8

const (
	// ReasonUnknown failures end the attempt; the next one begins with a list.
	ReasonUnknown Reason = iota
	// ReasonExpired: the version, or the page token, is no longer available.
	ReasonExpired
	// ReasonTooNew: the version has not been reached by the source yet.
	ReasonTooNew
	// ReasonRefused: nobody answers. Asking again at the same version is safe.
	ReasonRefused
	// ReasonBusy: the source asks to be left alone for a while.
	ReasonBusy
	// ReasonInternal: the source failed inside.
	ReasonInternal
	// ReasonLost: the connection broke. What was said before is good, and asking again
	// at the same version is safe.
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

// sourceError carries a reason beside the error that the source's own protocol
// gave, which stays reachable by errors.Is and errors.As and keeps its text.
type sourceError struct {
	reason Reason
	after  time.Duration
	err    error
}

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// Because wraps err with the reason for it. retryAfter is how long the source
// asked to be left alone, 0 if it did not say.
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

// maxRetryAfter is how long a source is left alone at most. Servers ask for
// seconds; what asks for days is mistaken, and must not silence a copy for good.
const maxRetryAfter = 10 * time.Minute

// RetryAfter returns how long the source asked to be left alone, up to ten
// minutes, and 0 if it did not say.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*sourceError](err); ok {
		return min(e.after, maxRetryAfter)
	}
	return 0
}

// ObjectErrors says which objects of a batch a store did not take in full: each is
// there, but for what its error says. The rest of the batch has been taken.
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
	// ErrOpaqueVersion says that a version cannot be ordered, so that nobody can
	// tell when it has been reached.
	ErrOpaqueVersion = errors.New("the version is opaque: it cannot be told whether it has been reached")
	// ErrRewound says that the source went back to an older state, as a server
	// restored from a backup does.
	ErrRewound = errors.New("the source went back in time")
	// ErrNoList says that the answer to a list was none.
	ErrNoList = errors.New("the answer is not a list")
	// ErrUndecodable says that something on the wire could not be read.
	ErrUndecodable = errors.New("cannot be decoded")
	// ErrShortWatch says that a watch ended at once without an event.
	ErrShortWatch = errors.New("very short watch: it ended within a second and brought nothing")
	// ErrNoInitialEnd says that a stream did not mark the end of its initial
	// events in time.
	ErrNoInitialEnd = errors.New("the stream of initial events did not come to its end")
	// ErrSilent says that a watch brought neither event nor bookmark for too
	// long.
	ErrSilent = errors.New("the watch fell silent")
)

// Taken says whether a store took what it was given: all of it, or all but the objects
// that an [ObjectErrors] names. Any other error means that it took nothing.
func Taken(err error) bool {
	_, some := errors.AsType[ObjectErrors](err)
	return err == nil || some
}
