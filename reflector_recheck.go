package tarn

import (
	"context"
	"sync"
)

// recheck is a request from outside of the loop: read the state anew, consistently
// and afresh, and believe no version while comparing, as after a rewind. It is for
// those who have seen that the copy is wrong although its versions are right, which
// the loop cannot see by itself.
//
// Requests made before a read begins are one request. A read that is under way
// when one is made is followed by another, since what it has compared already may
// be what is wrong. The waits between passes grow as after failures, so that
// nobody can keep the source busy by asking.
type recheck struct {
	mu sync.Mutex
	// cause is why, empty if nobody asks.
	cause string
	// end ends the pass that is following changes; nil while there is none.
	end context.CancelCauseFunc
}

// Recheck asks for the whole state to be read anew by a consistent read that
// compares content and not only versions; what differs is put right as changes
// that subscribers see. It returns at once, may be called at any time, before Run
// too, and after the end does nothing.
//
// Health.Lists counts the read under cause: a word of a few, not a text made for
// the occasion.
func (r *Replica[T]) Recheck(cause string) {
	if cause == "" {
		cause = "recheck"
	}
	for _, p := range r.sections {
		p.reflector.recheck.ask(cause)
	}
}

func (c *recheck) ask(cause string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == "" {
		c.cause = cause
	}
	if c.end != nil {
		c.end(errRelist)
	}
}

// follows lets a request end the pass that begins to follow changes now; one that
// was made since the read began ends it at once.
func (c *recheck) follows(end context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = end
	if c.cause != "" {
		end(errRelist)
	}
}

// followed notes the end of that pass, and says whether a request is waiting.
func (c *recheck) followed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = nil
	return c.cause != ""
}

// take makes the request, if there is one, that of the read which begins now.
func (c *recheck) take() (cause string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cause, c.cause = c.cause, ""
	return cause
}

// beginRecheck prepares a read for what was asked. It stays so prepared until a
// state has been taken, through any number of failures.
func (r *Reflector[T]) beginRecheck() {
	if cause := r.recheck.take(); cause != "" {
		r.readNext(nextRead{cause: cause, version: consistent, afresh: true})
	}
}
