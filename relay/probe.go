package relay

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tarnproject/tarn"
)

const (
	// latestWait is how long a list waits for the copy to reach the version that the
	// origin has, before it goes there. An event takes some milliseconds to arrive; a
	// copy that is behind for longer is behind because other resources have changed.
	latestWait = 100 * time.Millisecond
	// probeTimeout is how long the origin may take to say its version.
	probeTimeout = 10 * time.Second
)

// prober finds out what the newest version of the origin is, for requests that must see
// everything that was written before they arrived.
//
// Requests that wait share an answer, but never that of a question which was asked before
// they arrived: something may have been written in between. So at most two questions are
// open at a time, however many requests wait, and one of the two has not been asked yet.
type prober struct {
	ask func(ctx context.Context) (int64, error)
	// start runs a function in a goroutine of the relay; false if the relay has ended.
	start func(run func(ctx context.Context)) bool

	mu   sync.Mutex
	next *answer
	busy bool
}

type answer struct {
	done    chan struct{}
	version int64
	err     error
}

// version returns a version that the origin had after the call.
func (p *prober) version(ctx context.Context) (int64, error) {
	p.mu.Lock()
	if p.next == nil {
		p.next = &answer{done: make(chan struct{})}
	}
	a := p.next
	started := p.busy || p.start(p.run)
	p.busy = started
	p.mu.Unlock()
	if !started {
		return 0, errClosed
	}
	select {
	case <-a.done:
		return a.version, a.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (p *prober) run(ctx context.Context) {
	for {
		p.mu.Lock()
		a := p.next
		p.next = nil
		p.busy = a != nil
		p.mu.Unlock()
		if a == nil {
			return
		}
		asking, cancel := context.WithTimeout(ctx, probeTimeout)
		a.version, a.err = p.ask(asking)
		cancel()
		close(a.done)
	}
}

// askVersion asks for one object of the resource, consistently.
func (c *copied) askVersion(ctx context.Context) (int64, error) {
	c.probes.Add(1)
	page, err := c.source.List(ctx, tarn.ListQuery{AtLeast: tarn.Latest, Limit: 1})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(page.Version), 10, 64)
}

// onlyHere marks the context of a request that the origin cannot answer: one with a shard
// selector, which an older API server would ignore.
type onlyHere struct{}

// latest waits until the copy is as new as the origin was when the request arrived, or
// says that the origin must answer.
func (c *copied) latest(ctx context.Context, s *state, watch bool) error {
	if ctx.Value(onlyHere{}) == nil {
		return c.reachLatest(ctx, s, watch)
	}
	if err := c.reachLatest(ctx, s, true); err != nil {
		return apierrors.NewTimeoutError("the copy did not become as new as the origin in time, and the origin may not know shard selectors; ask again, or with a resourceVersion", 1)
	}
	return nil
}

func (c *copied) reachLatest(ctx context.Context, s *state, watch bool) error {
	before := s.stats().version
	version, err := c.version.version(ctx)
	if err != nil {
		return errors.Join(errUpstream, err)
	}
	if version < before {
		s.disprove(version)
		return errUpstream
	}
	_, current := s.await(ctx, version, latestWait)
	if current >= version || watch && c.quiet.reach(ctx, version, quietPatience) {
		return nil
	}
	return errUpstream
}
