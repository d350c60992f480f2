package relay

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/tarnproject/tarn/apiserver"
)

// serving is a request for as long as it is answered, which may be longer than its handler
// runs.
type serving struct {
	relay *Relay
	// ctx ends with the request of the client, with the relay, and at the end.
	ctx    context.Context
	cancel context.CancelFunc
	// detach and unlink stop ctx from ending with the request, and with the relay.
	detach, unlink func() bool
	// undo is what has to be undone, last first.
	undo []func()
}

// newServing returns nil if the relay has ended. Why not a context made of the request's:
// that one ends when the handler returns.
func (r *Relay) newServing(req *http.Request) *serving {
	if !r.enter() {
		return nil
	}
	r.requests.Add(1)
	s := &serving{relay: r}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(req.Context()))
	s.detach = context.AfterFunc(req.Context(), s.cancel)
	s.unlink = context.AfterFunc(r.ctx, s.cancel)
	return s
}

// endWith calls end when ctx ends. The end of the relay's own context no longer matters then.
func (s *serving) endWith(ctx context.Context, end func()) {
	s.unlink()
	s.unlink = context.AfterFunc(ctx, end)
}

// atEnd registers a function that is called when the request has been answered.
func (s *serving) atEnd(undo func()) { s.undo = append(s.undo, undo) }

// leave undoes what was to be undone at the end.
func (s *serving) leave() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.undo = nil
}

func (s *serving) end() {
	s.leave()
	s.detach()
	s.unlink()
	s.cancel()
	s.relay.requests.Add(-1)
	s.relay.running.Done()
}

// serveApart serves a request that may be a watch in another goroutine, and waits for it.
// Opening a watch needs a deep stack. If the handler opened it, its goroutine would keep that
// stack for as long as the watch is open.
func (r *Relay) serveApart(w http.ResponseWriter, req *http.Request, s *serving) (open *apiserver.OpenWatch, upstream bool) {
	if !strings.Contains(req.URL.RawQuery, "watch") && !strings.Contains(req.URL.Path, "/watch/") {
		return r.serve(w, req, s)
	}
	var fault any
	var stack []byte
	var apart sync.WaitGroup
	apart.Add(1)
	go func() {
		defer apart.Done()
		defer func() {
			if fault = recover(); fault != nil {
				stack = debug.Stack()
			}
		}()
		open, upstream = r.serve(w, req, s)
	}()
	apart.Wait()
	if fault != nil {
		panic(fmt.Sprintf("%v\n%s", fault, stack)) // net/http tells of it
	}
	return open, upstream
}

// recoverFault prevents a fault in one watch from ending the others, as net/http does for handlers.
func (r *Relay) recoverFault(req *http.Request) {
	if fault := recover(); fault != nil {
		r.counts.refused.add("fault")
		r.options.Logger.Error("a watch ended by a fault of the relay; please report it", "path", req.URL.Path, "fault", fault, "stack", string(debug.Stack()))
	}
}
