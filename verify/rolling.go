package verify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// Rolling compares a replica with its server over and over, at low cost: it reads each page of
// the collection once in a period, with pauses between them, and nothing else while everything
// is equal. A difference is checked a second time, then reported, and the replica reads its
// state again; at most once in a period, whatever is found.
//
// A round is of one version, and reads for no longer than servers remember one,
// resting for the remainder of the period. Why not slower, each page at its own
// version: a page cannot be asked for by its place, only by the token of the one
// before, which expires with the version; and what differs between two versions is
// mostly no difference. The price is a snapshot of the copy that is held meanwhile:
// the old state of what changes in these minutes.
type Rolling[T any] struct {
	target Target[T]
	opts   RollingOptions
	looker looker[T]

	// spread is over how long pages are spread: less after versions expired before
	// the last page was read, and more again when all goes well.
	spread  time.Duration
	expired bool

	mu     sync.Mutex
	status Status
}

// RollingOptions shape a [Rolling]. The zero value is a good choice.
type RollingOptions struct {
	Options
	// Period is how long a round takes; 10 min if 0.
	Period time.Duration
	// OnRound receives the result of each round. It should return soon. If nil,
	// rounds are logged, those without a fault at debug level only.
	OnRound func(Round)
	// Logger is for that; slog.Default if nil.
	Logger *slog.Logger
}

const (
	defaultPeriod = 10 * time.Minute
	// maxSpread is over how long pages are spread at most: etcd's versions are
	// compacted away after five minutes.
	maxSpread = 4 * time.Minute
	// firstWithin is how soon the first round begins, at random, so that the
	// replicas of a program do not all ask at once.
	firstWithin = time.Minute
	// recheckCause is what Health.Lists calls repairs.
	recheckCause = "verify"
)

// Round is how one round went.
type Round struct {
	// Number counts rounds from 1.
	Number int       `json:"number"`
	Began  time.Time `json:"began"`
	// Result is what was found, at the second look if the first one found a
	// difference.
	Result Result `json:"result"`
	// Passed counts differences of the first look that the second did not find:
	// what was wrong has been overwritten.
	Passed int `json:"passed,omitempty"`
	// After is the result after the copy had been read again; nil if that was not necessary.
	After *Result `json:"after,omitempty"`
	// Err says that the round could not be made.
	Err error `json:"-"`
}

// Repaired says that the copy was wrong and is right now.
func (r Round) Repaired() bool { return r.After != nil && r.After.Verdict == Equal }

// Status is what a [Rolling] has done so far.
type Status struct {
	// Rounds counts those made, Failed those that could not be. Found counts
	// differences, Repairs how often they were put right.
	Rounds, Failed, Found, Repairs int
	// Last is the last round, nil if there was none.
	Last *Round
}

// NewRolling returns a rolling comparison, which begins with Run.
func NewRolling[T any](t Target[T], o RollingOptions) (*Rolling[T], error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	if o.Period <= 0 {
		o.Period = defaultPeriod
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.NoDigest = true
	o.Options = o.Options.withDefaults()
	r := &Rolling[T]{target: t.apart(), opts: o, spread: min(o.Period, maxSpread)}
	r.looker = looker[T]{target: r.target, opts: o.Options, hurry: r.hurried}
	if r.opts.OnRound == nil {
		r.opts.OnRound = func(round Round) { round.Log(r.opts.Logger) }
	}
	return r, nil
}

// Run compares until ctx ends or the replica stops, and returns why it ended. It
// may be called once.
func (r *Rolling[T]) Run(ctx context.Context) error {
	if err := r.target.Replica.WaitSynced(ctx); err != nil {
		return err
	}
	wait := rand.N(min(firstWithin, r.opts.Period))
	for number := 1; ; number++ {
		if err := r.rest(ctx, wait); err != nil {
			return err
		}
		round := Round{Number: number, Began: time.Now()}
		r.round(ctx, &round)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.note(round)
		r.opts.OnRound(round)
		wait = r.opts.Period - time.Since(round.Began)
	}
}

// rest waits, unless there is nothing more to wait for.
func (r *Rolling[T]) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.target.Replica.Done():
		return tarn.ErrStopped
	}
}

// round makes one round.
func (r *Rolling[T]) round(ctx context.Context, round *Round) {
	r.looker.pace = r.slowly
	round.Result, round.Err = r.looker.look(ctx)
	r.spread, r.expired = r.nextSpread(), false
	if round.Err != nil || round.Result.Verdict != Different {
		return
	}
	r.looker.pace = noPause
	found := round.Result.Count()
	second, err := r.looker.look(ctx)
	if err != nil {
		round.Err = err
		return
	}
	second.Requests += round.Result.Requests
	round.Result = second
	if second.Verdict != Different {
		round.Passed = found
		return
	}
	r.repair(ctx)
	if after, err := r.looker.look(ctx); err != nil {
		round.Err = err
	} else {
		round.After = &after
	}
}

// slowly is the pause between two pages.
func (r *Rolling[T]) slowly(ctx context.Context) error {
	pages := int64(r.target.Store.Len())/r.opts.PageSize + 1
	return r.rest(ctx, r.spread/time.Duration(pages))
}

func (r *Rolling[T]) hurried() {
	r.expired = true
	r.spread /= 4
}

func (r *Rolling[T]) nextSpread() time.Duration {
	if r.expired {
		return r.spread
	}
	return min(2*r.spread+time.Second, r.opts.Period, maxSpread)
}

// repair makes the replica read its state again. It waits until that is done, or so
// long that another comparison gives the same answer.
func (r *Rolling[T]) repair(ctx context.Context) {
	before := rechecks(r.target.Replica.Health())
	r.target.Replica.Recheck(recheckCause)
	for deadline := time.Now().Add(r.opts.Patience); time.Now().Before(deadline); {
		if r.rest(ctx, time.Second) != nil {
			return
		}
		done := true
		for section, n := range rechecks(r.target.Replica.Health()) {
			asked, known := before[section]
			done = done && (!known || n > asked) // a section that was added meanwhile has just been read
		}
		if done {
			return
		}
	}
}

// rechecks counts those of each section, by name.
func rechecks(h tarn.Health) map[string]int64 {
	if len(h.Sections) == 0 {
		return map[string]int64{"": h.Lists[recheckCause]}
	}
	each := map[string]int64{}
	for _, section := range h.Sections {
		each[section.Section] = section.Lists[recheckCause]
	}
	return each
}

// Status returns what was done so far. It may be called at any time.
func (r *Rolling[T]) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *Rolling[T]) note(round Round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.status
	s.Rounds++
	if round.Err != nil {
		s.Failed++
	}
	s.Found += round.Result.Count() + round.Passed
	if round.Repaired() {
		s.Repairs++
	}
	s.Last = &round
}
