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
	if c.end != nil {
		c.end(errRelist)
	}
}

// passStarted sets the function by which a request ends the pass. A request that was
// made since the read began ends it at once.
func (c *recheck) passStarted(end context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = end
	if c.cause != "" {
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

// take returns the cause of the request, if there is one, and clears it.
func (c *recheck) take() (cause string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cause, c.cause = c.cause, ""
	return cause
}

// beginRecheck moves a request into nextRead, where it survives failures.
func (r *Reflector[T]) beginRecheck() {
	if cause := r.recheck.take(); cause != "" {
		r.readNext(nextRead{cause: cause, version: consistent, afresh: true})
	}
}
