package apiserver

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// output is how the bytes of a watch reach its client.
type output interface {
	// reserved is how many bytes at the beginning of each buffer belong to the output.
	reserved() int
	// begin sends the head of the answer.
	begin(deadline time.Time) error
	// seal fills the reserved bytes of a buffer, and adds what belongs after it.
	seal(buffer []byte) []byte
	// send sends a buffer that was sealed, by this output or another one of its sort. It
	// does not change it.
	send(buffer []byte, deadline time.Time) error
	// end ends the answer. complete says that everything before it was sent.
	end(complete bool)
	// detached says that the handler of the request may return before the answer has ended.
	detached() bool
}

// newOutput returns the output of a request, for which the header of the answer must be
// set. The context that it returns ends with ctx, and when the client has gone.
func newOutput(ctx context.Context, r *request, own bool) (output, context.Context) {
	control := http.NewResponseController(r.w)
	if own && r.ProtoMajor == 1 && r.ProtoMinor == 1 {
		header := r.w.Header()
		if conn, _, err := control.Hijack(); err == nil {
			r.w = nil // has buffers that are not needed any more
			return newChunked(ctx, conn, header)
		}
	}
	return newResponse(r.w, control), ctx
}

// response is an output by way of net/http.
//
// Its deadlines are kept by a timer, which makes a write fail that takes too long. To set a
// deadline before each write, and to remove it afterwards, so that it does not reset a quiet
// watch, would be two messages to the goroutine of an HTTP/2 connection, which all its
// streams share. The timer is not set for each write either: when it ends, it looks at the
// write that is under way, and begins again if that one has time left.
type response struct {
	w       http.ResponseWriter
	control *http.ResponseController
	flush   func() error

	began time.Time
	late  *time.Timer
	// timed says that the timer runs. until is when the write that is under way is too late,
	// counted from began; 0 if none is.
	timed atomic.Bool
	until atomic.Int64
}

func newResponse(w http.ResponseWriter, control *http.ResponseController) *response {
	o := &response{w: w, control: control, flush: flushOf(w, control), began: time.Now()}
	o.late = time.AfterFunc(time.Hour, o.checkLate)
	o.late.Stop()
	return o
}

// limit gives a write until a deadline.
func (o *response) limit(deadline time.Time) {
	o.until.Store(int64(deadline.Sub(o.began)))
	o.time(time.Until(deadline))
}

func (o *response) time(left time.Duration) {
	if o.timed.CompareAndSwap(false, true) {
		o.late.Reset(left)
	}
}

// checkLate ends a write that takes too long. Writers that know no deadline, as those of
// tests, never block.
func (o *response) checkLate() {
	o.timed.Store(false) // before until is read, so that a write which begins now sets the timer
	until := o.until.Load()
	if until == 0 {
		return
	}
	if left := time.Duration(until) - time.Since(o.began); left > 0 {
		o.time(left)
		return
	}
	_ = o.control.SetWriteDeadline(time.Unix(1, 0))
}

// flushOf finds what flushes a writer, once for all events. The controller looks for it each
// time.
func flushOf(w http.ResponseWriter, control *http.ResponseController) func() error {
	for {
		switch as := w.(type) {
		case interface{ FlushError() error }:
			return as.FlushError
		case interface{ Unwrap() http.ResponseWriter }:
			w = as.Unwrap()
		default:
			return control.Flush
		}
	}
}

func (o *response) reserved() int { return 0 }

func (o *response) begin(deadline time.Time) error {
	o.limit(deadline)
	defer o.until.Store(0)
	o.w.WriteHeader(http.StatusOK)
	return o.flush()
}

func (o *response) seal(buffer []byte) []byte { return buffer }

func (o *response) send(buffer []byte, deadline time.Time) error {
	o.limit(deadline)
	defer o.until.Store(0)
	if _, err := o.w.Write(buffer); err != nil {
		return err
	}
	return o.flush()
}

func (o *response) end(bool) { o.late.Stop() }

func (o *response) detached() bool { return false }
