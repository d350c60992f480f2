package faults

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Plan decides by its seed which faults are injected, and records them. One plan
// may serve any number of wrappers, each with its own name, from any number of
// goroutines.
//
// Call Within, Until and Suppress before the plan is used.
type Plan struct {
	seed     uint64
	mix      Mix
	limits   Limits
	suppress func(Place) bool
	until    time.Time
	began    time.Time
	// over is closed by End.
	over chan struct{}
	end  sync.Once

	mu sync.Mutex
	// numbers counts the requests of each name.
	numbers  map[string]int
	happened History
}

// Random returns a plan in which the seed decides everything: which kinds of faults
// there are, how often, and when.
func Random(seed uint64) *Plan { return New(seed, dayMix(seed)) }

// New returns a plan of the faults in mix. To take one kind out of a day and keep
// the rest:
//
//	mix := faults.Random(seed).Mix()
//	delete(mix, faults.Stall)
//	plan := faults.New(seed, mix)
func New(seed uint64, mix Mix) *Plan {
	return &Plan{
		seed:    seed,
		mix:     maps.Clone(mix),
		limits:  Limits{}.withDefaults(),
		began:   time.Now(),
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

// Suppress suppresses the faults for which suppress returns true, and returns the plan.
// A fault is in the same [Place] in every run of its seed, so a failing day can be
// reduced to the few faults that matter: suppress half of them, and see whether
// the test still fails.
func (p *Plan) Suppress(suppress func(Place) bool) *Plan {
	p.suppress = suppress
	return p
}

// End ends the day now. No fault is injected after that, and hung requests fail.
// A stalled stream stays stalled, because its reader has to notice that.
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

// allows records a fault and returns true. It returns false if the fault is
// suppressed or the day has ended: then the fault must not happen.
func (p *Plan) allows(f Fault) bool {
	if p.ended() || p.suppress != nil && p.suppress(f.Place) {
		return false
	}
	f.At = time.Since(p.began)
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
