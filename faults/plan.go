package faults

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Plan decides, by its seed, what goes wrong, and remembers what did. One plan
// may serve any number of wrappers, each with a name of its own, from any number
// of goroutines.
//
// Limits, end and pardons are set before it is used.
type Plan struct {
	seed   uint64
	mix    Mix
	limits Limits
	spare  func(Place) bool
	until  time.Time
	born   time.Time
	// over is closed by End.
	over chan struct{}
	end  sync.Once

	mu sync.Mutex
	// numbers counts the requests of each name.
	numbers  map[string]int
	happened History
}

// Day returns a plan in which the seed decides everything: which kinds of faults
// there are, how often, and when.
func Day(seed uint64) *Plan { return New(seed, weather(seed)) }

// New returns a plan of the faults in mix. To take a kind out of a day, and
// leave the rest of it as it was:
//
//	mix := faults.Day(seed).Mix()
//	delete(mix, faults.Stall)
//	plan := faults.New(seed, mix)
func New(seed uint64, mix Mix) *Plan {
	return &Plan{
		seed:    seed,
		mix:     maps.Clone(mix),
		limits:  Limits{}.withDefaults(),
		born:    time.Now(),
		over:    make(chan struct{}),
		numbers: map[string]int{},
	}
}

// Within sets how large faults get, and returns the plan.
func (p *Plan) Within(l Limits) *Plan {
	p.limits = l.withDefaults()
	return p
}

// Until sets when the day ends, and returns the plan.
func (p *Plan) Until(t time.Time) *Plan {
	p.until = t
	return p
}

// Spare makes the plan ask before each fault whether it shall not happen, and
// returns the plan. A fault is in the same [Place] in every run of its seed, so
// that a failing day can be reduced to the few faults that matter: spare half of
// them, and see whether it still fails.
func (p *Plan) Spare(spare func(Place) bool) *Plan {
	p.spare = spare
	return p
}

// End ends the day now. From then on nothing goes wrong: hung requests fail, as
// when a cut cable is mended; but what has stalled stays so, since that is for
// the other side to notice.
func (p *Plan) End() { p.end.Do(func() { close(p.over) }) }

// Seed is what the plan was made from.
func (p *Plan) Seed() uint64 { return p.seed }

// Mix is a copy of the chances.
func (p *Plan) Mix() Mix { return maps.Clone(p.mix) }

// ended says whether the day is over.
func (p *Plan) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return !p.until.IsZero() && !time.Now().Before(p.until)
	}
}

// allows records a fault, unless it is spared or too late: then it must not
// happen.
func (p *Plan) allows(f Fault) bool {
	if p.ended() || p.spare != nil && p.spare(f.Place) {
		return false
	}
	f.At = time.Since(p.born)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.happened = append(p.happened, f)
	return true
}

// hang waits for the end of a request that gets no answer.
func (p *Plan) hang(ctx context.Context) error {
	limit := p.limits.Hang
	if left := time.Until(p.until); !p.until.IsZero() && (limit <= 0 || left < limit) {
		limit = max(left, 1)
	}
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.over:
	case <-timeout:
	}
	return errTimedOut
}

// sleep waits for d, or for the end of ctx, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
