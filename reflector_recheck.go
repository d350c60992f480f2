package tarn

import (
	"context"
	"sync"
)

// recheck is a request from outside of the loop: read the whole state consistently and
// afresh, and compare content instead of versions, as after a rewind. It is for callers
// that found a wrong object under the right version, which the loop cannot detect.
//
// Requests made before a read begins are one request. A request during a read causes
// another read, since the first may already have compared the wrong object. The waits
// between passes grow as after failures, so that requests cannot overload the source.
type recheck struct {
	mu sync.Mutex
	// cause is empty if there is no request.
	cause string
	// shard asks for a read because another shard is wanted. It is consistent, so that the
	// state is not older than the change, and compares versions.
	shard bool
	// end ends the pass that is following changes; nil while there is none.
	end context.CancelCauseFunc
}

// Recheck asks for a consistent read of the whole state that compares content and
// not only versions. Subscribers see the corrections as changes. Recheck returns at
// once. It may be called at any time, before Run too; after the end it does nothing.
//
// Health.Lists counts the read under cause: use one of a few fixed texts.
func (r *Replica[T]) Recheck(cause string) {
	if cause == "" {
		cause = "recheck"
	}
	for _, p := range r.present() {
		p.reflector.recheck.ask(cause)
	}
}

func (c *recheck) ask(cause string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == "" {
		c.cause = cause
	}
	c.endPass()
}

func (c *recheck) askShard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shard = true
	c.endPass()
}

// endPass ends the pass that is following changes. The lock is held.
func (c *recheck) endPass() {
	if c.end != nil {
		c.end(errRelist)
	}
}

// shardChanged reports whether another shard is wanted than the one that was read.
func (c *recheck) shardChanged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shard
}

// passStarted sets the function by which a request ends the pass. A request that was
// made since the read began ends it at once.
func (c *recheck) passStarted(end context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = end
	if c.cause != "" || c.shard {
		end(errRelist)
	}
}

// passEnded records the end of the pass, and reports whether a request is waiting.
func (c *recheck) passEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = nil
	return c.cause != ""
}

// take returns the cause of the request, if there is one, and whether another shard is
// wanted, and clears both.
func (c *recheck) take() (cause string, shard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cause, c.cause = c.cause, ""
	shard, c.shard = c.shard, false
	return cause, shard
}

// beginRecheck moves a request into nextRead, where it survives failures.
func (r *Reflector[T]) beginRecheck() {
	cause, shard := r.recheck.take()
	if shard {
		r.readNext(nextRead{cause: causeShard, version: consistent, forShard: true})
	}
	if cause != "" {
		r.readNext(nextRead{cause: cause, version: consistent, afresh: true})
	}
}
