package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	names "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tarnproject/tarn/apiserver"
)

// ServeHTTP answers a request, from a copy or by the origin. It returns before a watch has
// ended that has taken its connection over ([Options.OwnConnections]).
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s := r.newServing(req)
	if s == nil {
		apiserver.SendError(w, req, apierrors.NewServiceUnavailable(errClosed.Error()))
		return
	}
	ends := true
	defer func() {
		if ends {
			s.end()
		}
	}()
	req = req.WithContext(s.ctx)
	open, upstream := r.serveApart(w, req, s)
	switch {
	case open != nil && open.Detached():
		ends = false
		s.detach()
		go func() {
			defer s.end()
			defer r.recoverFault(req)
			open.Run()
		}()
	case open != nil:
		open.Run()
	case upstream:
		r.pass(w, req)
	}
}

// serve answers a request, opens a watch, or says that the origin must answer.
func (r *Relay) serve(w http.ResponseWriter, req *http.Request, s *serving) (open *apiserver.OpenWatch, upstream bool) {
	if req.Header.Get(hopHeader) != "" {
		r.setAge(w)
	}
	if r.serveProbe(w, req) {
		return nil, false
	}
	if err := r.checkLoop(req); err != nil {
		r.counts.refused.add("loop")
		apiserver.SendError(w, req, err)
		return nil, false
	}
	c, to, cause, err := r.copyFor(req)
	if err != nil {
		// The refusal names namespaces, so it is for known callers only.
		if _, unknown := r.caller(req); unknown != nil {
			err = unknown
		}
	}
	if err != nil && !errors.Is(err, errUpstream) {
		apiserver.SendError(w, req, r.refuse(err))
		return nil, false
	}
	if c == nil {
		r.counts.passed.Add(1)
		return nil, true
	}
	err = errUpstream
	if cause == "" {
		open, err = r.serveCopy(w, req, s, c, to)
	}
	switch {
	case errors.Is(err, errUpstream):
		c.forwarded.add(cmp.Or(cause, upstreamCause(err)))
		s.leave() // it is no longer one of the copy's
		return nil, true
	case err != nil:
		apiserver.SendError(w, req, err)
	}
	return open, false
}

// serveProbe answers whether the relay is alive, and whether it should get requests.
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
	answerProbe(w, err)
	return true
}

// answerProbe answers a probe: ok without an error.
func answerProbe(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprint(w, "ok")
}

// copyFor returns the copy that a request reads, nil if there is none, and why the origin
// has to answer all the same; empty if the copy can.
//
// The origin decides whether a caller may act as somebody else. It also speaks WebSocket,
// which browsers use for watches. It prints tables whose columns are not known here, and
// selects by fields that are not known here, except for shards, which it may not know. A get
// without a version must see the caller's own last write.
func (r *Relay) copyFor(req *http.Request) (c *copied, to apiserver.Target, cause string, err error) {
	to, ok := apiserver.ParsePath(req.URL.Path)
	s := r.served[to.Resource]
	if !ok || s == nil || req.Method != http.MethodGet || to.Subresource != "" {
		return nil, to, "", nil
	}
	query := req.URL.Query()
	get := to.Name != "" && !to.Watch && query.Get("resourceVersion") == ""
	if c, err = r.copyOf(s, to); impersonates(req) || get || ofWebSocket(req) {
		err = nil // the origin answers
	}
	switch {
	case c == nil:
	case impersonates(req):
		cause = "impersonation"
	case ofWebSocket(req):
		cause = "websocket"
	case get:
		cause = "get without a version"
	case (to.Name == "" || to.Watch) && !query.Has("shardSelector") && !c.of.KnowsFields(query.Get("fieldSelector")):
		cause = "field selector"
	case !c.of.HasColumns() && strings.Contains(req.Header.Get("Accept"), "as=Table") && !query.Has("shardSelector"):
		cause = "table"
	}
	return c, to, cause, err
}

// ofWebSocket says whether a request asks for a WebSocket. Offers of other protocols, such as
// HTTP/2, may be ignored.
func ofWebSocket(req *http.Request) bool {
	return strings.EqualFold(req.Header.Get("Upgrade"), "websocket") && strings.Contains(strings.ToLower(req.Header.Get("Connection")), "upgrade")
}

// upstreamCause says why a read that the copy usually answers went to the origin.
func upstreamCause(err error) string {
	switch {
	case errors.Is(err, errNoToken):
		return "no token"
	case err == errUpstream:
		return "behind"
	}
	return "unproved"
}

// serveCopy answers from a copy, if the caller may read it. The origin decides about
// requests without credentials.
func (r *Relay) serveCopy(w http.ResponseWriter, req *http.Request, s *serving, c *copied, to apiserver.Target) (*apiserver.OpenWatch, error) {
	caller, err := r.caller(req)
	if err != nil {
		return nil, r.refuse(err)
	}
	access := accessOf(req, caller, to)
	watch := access.Verb == "watch"
	leave, err := r.limits.enter(caller.Name, watch)
	if err != nil {
		r.counts.refused.add("limit")
		return nil, err
	}
	s.atEnd(leave)
	if err := r.gate.Allow(req.Context(), access); err != nil {
		return nil, r.refuse(err)
	}
	if r.options.Audit != nil {
		r.options.Audit(access)
	}
	out := meter{ResponseWriter: w, began: func() { c.served.add(access.Verb) }, written: written{resource: &c.sentBytes}}
	if watch {
		var gone func()
		out.client, gone = r.counts.clients.enter(to.Resource, caller.Name, req)
		s.atEnd(gone)
		s.atEnd(r.keepAsking(s, req, access))
		s.endWith(r.draining, func() { r.closeSoon(s) })
		if req.Header.Get(hopHeader) != "" {
			req = req.WithContext(context.WithValue(req.Context(), noGaps{}, true))
		}
	}
	if req.URL.Query().Has("shardSelector") {
		req = req.WithContext(context.WithValue(req.Context(), onlyHere{}, true))
	}
	return c.reader.Begin(out, req, to)
}

// caller says who makes a request: by its client certificate, or as the gate says.
func (r *Relay) caller(req *http.Request) (Caller, error) {
	caller, certified, err := r.certificates.caller(req)
	if certified || err != nil {
		return caller, err
	}
	return r.gate.Caller(req)
}

// closeSoon ends a watch at some moment of the time in which the relay drains.
func (r *Relay) closeSoon(s *serving) {
	timer := time.AfterFunc(rand.N(r.options.DrainTime), s.cancel)
	context.AfterFunc(s.ctx, func() { timer.Stop() })
}

// askAgain is how often the right to an open watch is checked.
const askAgain = 10 * time.Second

// keepAsking ends a watch once its caller may no longer read what it reads. It does not end
// the watch if the gate cannot be reached.
func (r *Relay) keepAsking(s *serving, req *http.Request, a Access) (stop func()) {
	var timer *time.Timer
	set := make(chan struct{})
	check := func() {
		<-set
		r.start(func(context.Context) {
			caller, err := r.caller(req)
			if err == nil {
				a.Caller = caller
				err = r.gate.Allow(s.ctx, a)
			}
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				s.cancel()
				return
			}
			if s.ctx.Err() == nil {
				timer.Reset(askAgain)
			}
		})
	}
	timer = time.AfterFunc(askAgain, check)
	close(set)
	return func() { timer.Stop() }
}

// accessOf describes a request as the API server describes it to its authorizers. A list by
// name is a list of that name; a namespace is in itself; a get has no selectors, because
// nothing looks at them. On the old paths of watches, selectors do not narrow the right that a
// caller needs: where such a path has a name, API servers have not always looked at them.
func accessOf(req *http.Request, caller Caller, to apiserver.Target) Access {
	query := req.URL.Query()
	a := Access{Caller: caller, Verb: to.Verb(query), Resource: to.Resource, Namespace: to.Namespace, Name: to.Name, From: req.RemoteAddr}
	if to.Resource.Resource == "namespaces" && to.Namespace == "" {
		a.Namespace = to.Name
	}
	if a.Verb == "get" || to.Watch {
		return a
	}
	a.LabelSelector, a.FieldSelector = query.Get("labelSelector"), query.Get("fieldSelector")
	if selector, err := fields.ParseSelector(a.FieldSelector); err == nil && a.Name == "" {
		if name, ok := selector.RequiresExactMatch(nameField); ok && len(names.IsPathSegmentName(name)) == 0 {
			a.Name = name
		}
	}
	return a
}
