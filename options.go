package tarn

import (
	"context"
	"log/slog"
	"reflect"
	"time"
)

// Options configure a [Reflector] or a [Replica]. The zero value is a good choice.
type Options[T any] struct {
	// Name appears in errors, logs and Health; "tarn" if empty.
	Name string
	// Transform turns an object of the source into the object that the store keeps.
	// It owns the object and may change it in place. An error or panic marks the
	// object as bad.
	Transform func(T) (T, error)
	// Equal reports whether two states with the same version, or without one, are
	// the same; reflect.DeepEqual if nil.
	Equal func(a, b T) bool

	// PageSize returns the page size for lists. It is called before every list. If
	// it returns 0 or is nil, reads that the source cannot serve from memory have
	// pages of DefaultPageSize, and other reads are not paged.
	PageSize func() int64
	// Unversioned says that the source has no versions, or versions that say nothing
	// about time, as fakes have. Unless it sends bookmarks, as a server does, its
	// versions are not compared. The reflector repeats a first list of any other source
	// that is empty and has no version, before it accepts it.
	Unversioned bool
	// WatchList reads the first state as a stream. After three streams in a row
	// without an end of the initial events the source is listed instead.
	WatchList bool
	// WatchListDeadline is how long a stream of initial events may bring fewer than ten
	// of them a second, and not their end, before the source is listed instead; 25 s
	// if 0.
	WatchListDeadline time.Duration
	// MinWatchTimeout is the shortest timeout that a watch asks for; the actual
	// one is random, up to twice as long. Less than 5 min counts as 5 min.
	MinWatchTimeout time.Duration
	// ListTimeout is how long a list may take to answer; 5 min if 0. Negative
	// means no limit.
	ListTimeout time.Duration
	// SilenceLimit is how long a watch may deliver neither event nor bookmark
	// before the source is probed and the watch replaced; 150 s if 0, which
	// suits sources that send a bookmark about every minute. Negative means no
	// limit.
	SilenceLimit time.Duration
	// RetryInternal returns for how long internal errors of a watch are retried
	// without a new list. It is called at each such error.
	RetryInternal func() time.Duration

	// Sinks get the changes of a [Replica], each at its own pace. The first of them that
	// is a [Restorer] gives the replica its content when it starts. A [Reflector] without
	// a replica has no sinks.
	Sinks []Sink[T]

	// ResyncPeriod is how often the store's content is delivered again; 0 means never.
	ResyncPeriod time.Duration
	// ShouldResync is called each time; nil means yes.
	ShouldResync func() bool

	// OnError gets every failure to list or watch, on connecting or inside a
	// stream, and every rewind. It should return soon. If nil, failures are logged.
	OnError func(ctx context.Context, err error)
	// OnBad gets every object that the store could not take. If nil, they are logged.
	OnBad func(ctx context.Context, bad BadObject)

	// OnDamage gets objects of the copy that a program wrote to by mistake, at most
	// one per field and minute. They are read again, and Health counts all of them.
	// If nil, they are logged and given to OnError.
	OnDamage func(ctx context.Context, damage Damage)

	// Guard puts objects into memory that cannot be written, so that a program which
	// writes to one by mistake stops at the line that writes. It is for tests: memory is
	// not given back. The environment variable TARN_GUARD=1 does the same for all copies
	// of a process.
	Guard bool

	// Clock replaces real time. Delay returns the wait before each new attempt; if nil,
	// [DefaultBackoff] does, and starts over when the source has answered in full. Jitter
	// returns a random part of the duration that it is given.
	Clock  Clock
	Delay  func() time.Duration
	Jitter func(time.Duration) time.Duration
	// Logger logs everything that has no handler; slog.Default if nil.
	Logger *slog.Logger
}

const (
	// DefaultPageSize is the page size where [Options.PageSize] sets none.
	DefaultPageSize = 500

	defaultWatchListDeadline = 25 * time.Second
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
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnDamage == nil {
		given := o
		o.OnDamage = func(ctx context.Context, damage Damage) { given.logDamage(ctx, damage) }
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
