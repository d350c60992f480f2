package tarn

import (
	"context"
	"log/slog"
	"reflect"
	"time"
)

// Options shape a [Reflector] and a [Replica]. The zero value is a good choice.
type Options[T any] struct {
	// Name stands in errors, logs and Health; "tarn" if empty.
	Name string
	// Transform makes what is kept out of what the source gave. It owns the
	// object and may change it in place. An error or panic marks the object as
	// bad.
	Transform func(T) (T, error)
	// Equal tells whether two states with the same version, or without one, are
	// the same; reflect.DeepEqual if nil.
	Equal func(a, b T) bool

	// PageSize asks for lists in pages of this size. 0 leaves it to the rules:
	// DefaultPageSize for reads that the source cannot serve from memory, none
	// for others. It is asked before every list.
	PageSize func() int64
	// Unversioned says that the source is known to have no versions, as fakes
	// have none. From any other, an empty first list without a version is only
	// believed when it is said twice.
	Unversioned bool
	// WatchList lets the first state come as a stream. A source that does not do
	// it properly is listed instead after a few tries.
	WatchList bool
	// WatchListDeadline is how long a stream of initial events may bring none
	// before it is given up; 30 s if 0.
	WatchListDeadline time.Duration
	// MinWatchTimeout is the least time for which a watch is asked to last, at
	// random up to twice of it; 5 min if less than that.
	MinWatchTimeout time.Duration
	// ListTimeout is how long a list may take to answer; 5 min if 0, negative:
	// for ever.
	ListTimeout time.Duration
	// SilenceLimit is how long a watch may bring neither event nor bookmark
	// before the source is probed and the watch replaced; 150 s if 0, which
	// suits sources that send a bookmark about every minute. Negative: never.
	SilenceLimit time.Duration
	// RetryInternal is for how long internal errors of a watch are retried
	// without a new list; asked at each such error.
	RetryInternal func() time.Duration

	// Sinks are given what a [Replica] takes, each at its own pace. The first of them that
	// is a [Restorer] gives the replica its content when it starts. A [Reflector] without
	// a replica has no sinks.
	Sinks []Sink[T]

	// ResyncPeriod is how often the store's content is offered again; 0: never.
	ResyncPeriod time.Duration
	// ShouldResync is asked each time; nil means yes.
	ShouldResync func() bool

	// OnError sees every failure to list or watch, whether on connecting or
	// inside a stream, and every rewind. It should return soon. If nil, failures
	// are logged.
	OnError func(ctx context.Context, err error)
	// OnBad sees every object that could not be taken. If nil, they are logged.
	OnBad func(ctx context.Context, bad BadObject)

	// OnDamage sees objects of the copy that a program wrote to by mistake; of many
	// in one field only one a minute. They are read again, and Health counts all. If
	// nil, they are logged and given to OnError.
	OnDamage func(ctx context.Context, damage Damage)

	// Guard puts objects into memory that cannot be written, so that a program which
	// writes to one by mistake stops at the line that writes. It is for tests: memory is
	// not given back. The environment variable TARN_GUARD=1 does the same for all copies
	// of a process.
	Guard bool

	// Clock and Delay replace the passing of time and the waits between
	// attempts; Jitter what is random about waits, by returning some part of the
	// length it is given.
	Clock  Clock
	Delay  func() time.Duration
	Jitter func(time.Duration) time.Duration
	// Logger takes what no handler took; slog.Default if nil.
	Logger *slog.Logger
}

const (
	// DefaultPageSize is the size of pages where the rules ask for them.
	DefaultPageSize = 500

	defaultWatchListDeadline = 30 * time.Second
	defaultMinWatchTimeout   = 5 * time.Minute
	defaultSilenceLimit      = 150 * time.Second
	defaultListTimeout       = 5 * time.Minute
)

func (o Options[T]) withDefaults() Options[T] {
	if o.Name == "" {
		o.Name = "tarn"
	}
	if o.Equal == nil {
		o.Equal = func(a, b T) bool { return reflect.DeepEqual(a, b) }
	}
	if o.PageSize == nil {
		o.PageSize = func() int64 { return 0 }
	}
	if o.WatchListDeadline <= 0 {
		o.WatchListDeadline = defaultWatchListDeadline
	}
	o.MinWatchTimeout = max(o.MinWatchTimeout, defaultMinWatchTimeout)
	if o.SilenceLimit == 0 {
		o.SilenceLimit = defaultSilenceLimit
	}
	if o.ListTimeout == 0 {
		o.ListTimeout = defaultListTimeout
	}
	if o.RetryInternal == nil {
		o.RetryInternal = func() time.Duration { return 0 }
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Jitter == nil {
		o.Jitter = randomPart
	}
	if o.Delay == nil {
		o.Delay = DefaultBackoff.Delay(o.Clock, o.Jitter)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnDamage == nil {
		told := o
		o.OnDamage = func(ctx context.Context, damage Damage) { told.logDamage(ctx, damage) }
	}
	if o.OnError == nil {
		o.OnError = func(ctx context.Context, err error) {
			o.Logger.WarnContext(ctx, "the copy is not following its source", "replica", o.Name, "err", err)
		}
	}
	if o.OnBad == nil {
		o.OnBad = func(ctx context.Context, bad BadObject) {
			o.Logger.ErrorContext(ctx, "an object could not be taken; its last good state stays", "replica", o.Name, "key", bad.Key, "err", bad.Err)
		}
	}
	return o
}
