package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tarnproject/tarn/apiserver"
)

// ServeHTTP answers a request, from a copy or by the origin.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !r.enter() {
		apiserver.SendError(w, req, apierrors.NewServiceUnavailable(errClosed.Error()))
		return
	}
	defer r.running.Done()
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	req = req.WithContext(ctx)
	if req.Header.Get(hopHeader) != "" {
		r.setAge(w)
	}
	if r.serveProbe(w, req) {
		return
	}
	if err := r.checkLoop(req); err != nil {
		apiserver.SendError(w, req, err)
		return
	}
	c, to, err := r.copyFor(req)
	if err != nil {
		apiserver.SendError(w, req, err)
		return
	}
	if c == nil {
		r.origin.ServeHTTP(w, req)
		return
	}
	switch err := r.serveCopy(w, req, c, to); {
	case errors.Is(err, errUpstream):
		c.forwarded.Add(1)
		r.origin.ServeHTTP(w, req)
	case err != nil:
		apiserver.SendError(w, req, err)
	}
}

// serveProbe answers whether the relay lives, and whether it should get requests.
func (r *Relay) serveProbe(w http.ResponseWriter, req *http.Request) bool {
	var err error
	switch strings.TrimSuffix(req.URL.Path, "/") {
	case "/livez", "/healthz":
	case "/readyz":
		err = r.Ready()
	default:
		return false
	}
	r.setAge(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return true
	}
	fmt.Fprint(w, "ok")
	return true
}

// copyFor returns the copy that a request can be answered from, nil if there is none.
//
// A caller who acts as somebody else is for the origin to judge. Where the columns of a
// table are not known, it prints it, but for shards, which it may not know. A get without a
// version reads back what somebody has just written.
func (r *Relay) copyFor(req *http.Request) (*copied, apiserver.Target, error) {
	to, ok := apiserver.ParsePath(req.URL.Path)
	s := r.served[to.Resource]
	query := req.URL.Query()
	switch {
	case !ok, s == nil, req.Method != http.MethodGet, to.Subresource != "", impersonates(req):
		return nil, to, nil
	case to.Name != "" && !to.Watch && query.Get("resourceVersion") == "":
		return nil, to, nil
	}
	c, err := r.copyOf(s, to)
	if c != nil && !c.of.HasColumns() && strings.Contains(req.Header.Get("Accept"), "as=Table") && !query.Has("shardSelector") {
		c = nil
	}
	return c, to, err
}

func impersonates(req *http.Request) bool {
	for name := range req.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// serveCopy answers from a copy, if the caller may read it. Whoever sends no credentials
// is judged by the origin.
func (r *Relay) serveCopy(w http.ResponseWriter, req *http.Request, c *copied, to apiserver.Target) error {
	caller, err := r.gate.Caller(req)
	if err != nil {
		return err
	}
	access := accessOf(req, caller, to)
	watch := access.Verb == "watch"
	leave, err := r.limits.enter(caller.Name, watch)
	if err != nil {
		return err
	}
	defer leave()
	if err := r.gate.Allow(req.Context(), access); err != nil {
		return err
	}
	if r.options.Audit != nil {
		r.options.Audit(access)
	}
	if watch {
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		defer r.keepAsking(ctx, cancel, req, access)()
		defer context.AfterFunc(r.draining, func() { r.closeSoon(ctx, cancel) })()
		if req.Header.Get(hopHeader) != "" {
			ctx = context.WithValue(ctx, noGaps{}, true)
		}
		req = req.WithContext(ctx)
	}
	if req.URL.Query().Has("shardSelector") {
		req = req.WithContext(context.WithValue(req.Context(), onlyHere{}, true))
	}
	c.served.Add(1)
	return c.reader.Serve(w, req, to)
}

// closeSoon ends a watch at some moment of the time in which the relay drains.
func (r *Relay) closeSoon(ctx context.Context, cancel context.CancelFunc) {
	timer := time.AfterFunc(rand.N(r.options.DrainTime), cancel)
	context.AfterFunc(ctx, func() { timer.Stop() })
}

// askAgain is how often the right to an open watch is checked.
const askAgain = 10 * time.Second

// keepAsking ends a watch when its caller may no longer read what it reads. The answer of
// a gate that cannot be reached is no reason.
func (r *Relay) keepAsking(ctx context.Context, end context.CancelFunc, req *http.Request, a Access) (stop func()) {
	var timer *time.Timer
	set := make(chan struct{})
	check := func() {
		<-set
		r.start(func(context.Context) {
			caller, err := r.gate.Caller(req.WithContext(ctx))
			if err == nil {
				a.Caller = caller
				err = r.gate.Allow(ctx, a)
			}
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				end()
				return
			}
			if ctx.Err() == nil {
				timer.Reset(askAgain)
			}
		})
	}
	timer = time.AfterFunc(askAgain, check)
	close(set)
	return func() { timer.Stop() }
}

// accessOf describes a request as the origin's authorizers would. A list by name is a list
// of that name.
func accessOf(req *http.Request, caller Caller, to apiserver.Target) Access {
	query := req.URL.Query()
	a := Access{
		Caller: caller, Verb: "list", Resource: to.Resource, Namespace: to.Namespace, Name: to.Name,
		LabelSelector: query.Get("labelSelector"), FieldSelector: query.Get("fieldSelector"), From: req.RemoteAddr,
	}
	watch, err := strconv.ParseBool(query.Get("watch"))
	switch {
	case to.Watch || to.Name == "" && (watch || err != nil && query.Get("watch") != ""):
		a.Verb = "watch"
	case to.Name != "":
		a.Verb = "get"
	}
	if selector, err := fields.ParseSelector(a.FieldSelector); err == nil && a.Name == "" {
		if name, ok := selector.RequiresExactMatch(nameField); ok {
			a.Name = name
		}
	}
	return a
}
