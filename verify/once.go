package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
)

// Options shape a comparison. The zero value is a good choice.
type Options struct {
	// PageSize is how many objects one request reads; 500 if 0.
	PageSize int64
	// MaxDifferences is how many differences a Result lists; 20 if 0. All are
	// counted.
	MaxDifferences int
	// Patience is how long the copy may take to reach the version of the server,
	// where the comparison must wait for that; 2 min if 0, which is enough for a
	// copy of something quiet to get its next bookmark.
	Patience time.Duration
	// NoDigest saves the work of computing digests, which is more than that of
	// comparing.
	NoDigest bool
}

const (
	defaultMaxDifferences = 20
	defaultPatience       = 2 * time.Minute
	// maxFields is how many paths a difference has at most.
	maxFields = 10
	// attempts is how often a version may expire before the server is said to
	// forget faster than can be read.
	attempts = 4
)

func (o Options) withDefaults() Options {
	if o.PageSize <= 0 {
		o.PageSize = tarn.DefaultPageSize
	}
	if o.MaxDifferences <= 0 {
		o.MaxDifferences = defaultMaxDifferences
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	return o
}

// Once waits until the replica is synced, and compares it with its server.
//
// The error says that it could not be compared, and why; what a comparison found
// is in the result only.
func Once[T any](ctx context.Context, t Target[T], o Options) (Result, error) {
	if err := t.validate(); err != nil {
		return Result{Name: t.Name, Verdict: Unknown}, err
	}
	if err := t.Replica.WaitSynced(ctx); err != nil {
		return Result{Name: t.Name, Verdict: Unknown}, err
	}
	l := &looker[T]{target: t.apart(), opts: o.withDefaults(), pace: noPause}
	return l.look(ctx)
}

func noPause(ctx context.Context) error { return ctx.Err() }

// looker makes comparisons until one succeeds.
type looker[T any] struct {
	target Target[T]
	opts   Options
	pace   func(context.Context) error
	// hurry is called when a version expired before everything was read.
	hurry func()
}

func (l *looker[T]) look(ctx context.Context) (Result, error) {
	began := time.Now()
	requests := 0
	// The sections of a replica are at versions of their own.
	exact := len(l.target.Sources) == 1 && numbered(l.target.Store.Version())
	for attempt := 1; ; attempt++ {
		c := newComparison(l.target, l.opts, exact)
		err := c.run(ctx, l.pace)
		c.held.Close()
		requests += c.result.Requests
		c.result.Requests, c.result.Took = requests, time.Since(began)
		switch reason := tarn.ReasonOf(err); {
		case err == nil:
			l.note(c)
			c.result.conclude()
			return c.result, nil
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case reason == tarn.ReasonExpired && attempt < attempts:
			requests++
			if l.hurry != nil {
				l.hurry()
			}
			if err = l.catchUp(ctx, c.at); err == nil {
				continue
			}
		case reason == tarn.ReasonExpired:
			err = fmt.Errorf("the server forgets versions faster than it can be read, %d times in a row; ask for larger pages than %d: %w", attempts, l.opts.PageSize, err)
		case exact && (reason == tarn.ReasonUnknown || reason == tarn.ReasonTooNew):
			// It cannot show the past, or is not there yet. If it is something
			// else that it refuses, it will refuse the next list too.
			exact = false
			continue
		}
		c.result.Verdict = Unknown
		c.result.Note = err.Error()
		return c.result, fmt.Errorf("%s: cannot be compared with the server: %w", l.target.Name, err)
	}
}

func numbered(v tarn.Version) bool {
	_, ok := v.Compare(v)
	return ok
}

// catchUp lets the copy come to a version that the server still knows.
func (l *looker[T]) catchUp(ctx context.Context, held tarn.Version) error {
	page, err := l.target.list(ctx, l.target.Sources[0], tarn.ListQuery{AtLeast: tarn.Latest, Limit: 1})
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeoutCause(ctx, l.opts.Patience, fmt.Errorf("not within %s", l.opts.Patience))
	defer cancel()
	err = l.target.Replica.WaitFor(within, page.Version)
	if err == nil || errors.Is(err, tarn.ErrOpaqueVersion) {
		return nil
	}
	return fmt.Errorf("the server has forgotten version %s, and the copy does not catch up: %w", held, err)
}

// note says what is special about a comparison that was not exact.
func (l *looker[T]) note(c *comparison[T]) {
	switch {
	case c.exact:
	case c.result.Version.OlderThan(c.at):
		c.result.Behind = true
		c.result.Note = fmt.Sprintf("the server is at version %s and the copy at %s: the server went back", c.result.Version, c.at)
	case c.result.Note != "":
	case len(l.target.Sources) > 1:
		c.result.Note = "the copy has several sections, each at a version of its own: compared with their latest states"
	case !numbered(c.at):
		c.result.Note = "there are no versions to compare at: compared with the latest state"
	default:
		c.result.Note = "the server does not show past versions: compared with its latest state"
	}
}
