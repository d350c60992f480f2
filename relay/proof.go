package relay

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

const (
	// quietPatience is how long a watch with initial events waits for a proof: at the origin
	// it would stay for as long as it is open.
	quietPatience = 9 * time.Second
	// quietWatch is the timeout of a watch that proves that nothing has happened: servers
	// send a bookmark two seconds before the end of a watch. A busy one may be too late
	// with it, and is then asked once more, with more time.
	quietWatch       = 3 * time.Second
	quietWatchIfBusy = 5 * time.Second
)

// proofs show that nothing has happened to a resource since the version of its copy.
//
// The newest version of the origin counts the changes of all resources, and a copy learns
// only of its own. Once a minute a bookmark shows how far the others have come. A proof is a
// watch from the version of the copy: if a bookmark comes first, the copy is as it is at the
// bookmark.
//
// One proof at a time serves all requests that wait, whatever version each of them needs. A
// request whose version the proof did not reach starts the next one.
//
// Why not ask again for each request that arrives later, as [prober] does: a server sends no
// bookmark to a watch that starts at its newest version. A second proof right after the first
// would time out.
type proofs struct {
	state *state
	// prove moves the version of the state on.
	prove func(ctx context.Context) error
	// start runs a function in a goroutine of the relay; false if the relay has ended.
	start func(run func(ctx context.Context)) bool

	mu      sync.Mutex
	current *proof
}

type proof struct {
	done chan struct{}
	err  error
}

// reach waits until the copy has a version, and returns whether it has. It gives up when a
// proof has failed, and after maxWait.
func (p *proofs) reach(ctx context.Context, version int64, maxWait time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for {
		reached, moved := p.state.reached(version)
		if reached || ctx.Err() != nil {
			return reached
		}
		running := p.run()
		if running == nil {
			return false
		}
		select {
		case <-moved:
		case <-running.done:
			if running.err != nil {
				reached, _ := p.state.reached(version)
				return reached
			}
		case <-ctx.Done():
		}
	}
}

// run returns the proof that is under way, and begins one if there is none; nil if the relay
// has ended.
func (p *proofs) run() *proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		return p.current
	}
	running := &proof{done: make(chan struct{})}
	started := p.start(func(ctx context.Context) {
		proving, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		running.err = p.prove(proving)
		p.mu.Lock()
		p.current = nil
		p.mu.Unlock()
		close(running.done)
	})
	if !started {
		return nil
	}
	p.current = running
	return running
}

// askQuiet is one proof. A busy origin is asked twice.
func (c *copied) askQuiet(ctx context.Context) error {
	err := c.watchQuiet(ctx, quietWatch)
	if errors.Is(err, io.EOF) {
		err = c.watchQuiet(ctx, quietWatchIfBusy)
	}
	return err
}

// watchQuiet watches from the version of the copy until a bookmark or an event comes. An
// event comes to the copy too, which it waits for.
func (c *copied) watchQuiet(ctx context.Context, timeout time.Duration) error {
	c.quietWatches.Add(1)
	from := c.state.stats().version
	stream, err := c.source.Watch(ctx, tarn.WatchQuery{From: tarn.Version(strconv.FormatInt(from, 10)), Timeout: timeout})
	if err != nil {
		return err
	}
	defer stream.Close()
	var buf [1]tarn.Event[Object]
	if _, err := stream.Next(ctx, buf[:]); err != nil {
		return err
	}
	if e := buf[0]; e.Type == tarn.EventBookmark && e.Bad.Err == nil {
		c.state.confirm(from, versionOf(e.Version))
	} else {
		c.state.await(ctx, from+1, time.Second)
	}
	return nil
}

// prove waits until ctx ends for a proof that the copy is at a version.
func (c *copied) prove(ctx context.Context, version int64) {
	c.quiet.reach(ctx, version, quietPatience)
}
