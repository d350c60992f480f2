package relay

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tarnproject/tarn"
)

const (
	// latestPatience is how long a list waits for the copy to reach the version that the
	// origin has, before it goes there. An event takes some milliseconds to arrive; a
	// copy that is behind for longer is so because other resources have changed.
	latestPatience = 100 * time.Millisecond
	// quietPatience is how long a watch with initial events waits instead: it would
	// stay at the origin for as long as it is open.
	quietPatience = 5 * time.Second
	// quietWatch is the timeout of a watch that proves that nothing has happened: servers
	// send a bookmark two seconds before the end of a watch. A busy one may be too late
	// with it, and is then asked once more, with more time.
	quietWatch       = 3 * time.Second
	quietWatchIfBusy = 5 * time.Second
	// probeTimeout is how long the origin may take to say its version.
	probeTimeout = 10 * time.Second
)

// prober finds out what the newest version of the origin is, for requests that must see
// everything that was written before they arrived.
//
// Requests that wait share an answer, but never that of a question which was asked before
// they arrived: something may have been written in between. So at most two questions are
// open at a time, of which one has not been asked yet, however many requests wait.
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

// askQuiet watches from the version of the copy until a bookmark or an event comes, and
// returns the version of the copy afterwards.
//
// The newest version of the origin counts the changes of all resources, and a copy learns
// only of its own, and each minute by a bookmark how far the others have come. That no
// event comes before a bookmark proves that the copy is as it is at the bookmark.
func (c *copied) askQuiet(ctx context.Context) (int64, error) {
	version, err := c.watchQuiet(ctx, quietWatch)
	if errors.Is(err, io.EOF) {
		version, err = c.watchQuiet(ctx, quietWatchIfBusy)
	}
	return version, err
}

func (c *copied) watchQuiet(ctx context.Context, timeout time.Duration) (int64, error) {
	c.quietWatches.Add(1)
	from := c.state.stats().version
	stream, err := c.source.Watch(ctx, tarn.WatchQuery{From: tarn.Version(strconv.FormatInt(from, 10)), Timeout: timeout})
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	var buf [1]tarn.Event[Object]
	if _, err := stream.Next(ctx, buf[:]); err != nil {
		return 0, err
	}
	if e := buf[0]; e.Type == tarn.EventBookmark && e.Bad.Err == nil {
		c.state.confirm(from, versionOf(e.Version))
	}
	return c.state.stats().version, nil
}

// prove asks the origin for a proof that nothing has happened, and waits for the answer.
func (c *copied) prove(ctx context.Context) { _, _ = c.quiet.version(ctx) } // a failure proves nothing

// onlyHere marks the context of a request that the origin cannot answer: one with a shard
// selector, which an older API server would take no notice of.
type onlyHere struct{}

// latest waits until the copy is as new as the origin was when the request arrived, or
// says that the origin is to answer.
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
	version, err := c.version.version(ctx)
	if err != nil {
		return errors.Join(errUpstream, err)
	}
	_, current := s.await(ctx, version, latestPatience)
	for began := time.Now(); watch && current < version && time.Since(began) < quietPatience && ctx.Err() == nil; {
		if _, err := c.quiet.version(ctx); err != nil {
			break
		}
		_, current = s.await(ctx, version, latestPatience)
	}
	if current < version {
		return errUpstream
	}
	return nil
}
