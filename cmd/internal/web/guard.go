package web

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// guard decides which requests are answered. In this order:
//
//   - Only GET and HEAD, since nothing here changes anything; POST where a statement
//     of SQL is sent, which changes nothing either, and must say that it is one
//     (application/sql), which the form of a foreign page cannot; and what opens and
//     ends sessions.
//   - A request must name this server in its Host header. A page of a foreign
//     site whose name was bound to our address (DNS rebinding) does not.
//   - It must come from our own page or from no page at all. Links of other
//     sites may lead to the page itself, not to data.
//   - Data needs the token, or a session that was opened with it.
//
// The token itself is enough for the second and third check: no foreign page can know it, and
// programs use addresses that are in no certificate. Probes are answered for everybody,
// without detail.
type guard struct {
	hosts []string
	// certificate returns our certificate, which also has our names; nil without TLS.
	certificate func() *tls.Certificate
	// token is nil if no token is needed.
	token    *token
	sessions *sessions
	// connections are the connections of our own server; nil for a handler in another one.
	connections *connections
}

func newGuard(t *token, opts Options) *guard {
	g := &guard{token: t, sessions: newSessions(opts.SessionLife)}
	for _, host := range opts.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(hostOf(host)))
	}
	return g
}

// visitor is the sender of a request.
type visitor struct {
	as string
	// text and until belong to a session.
	text  string
	until time.Time
}

// How a visitor has authenticated.
const (
	asNobody    = "nobody"
	asToken     = "token"
	asSession   = "session"
	asAnonymous = "anonymous" // no token is needed here
)

func (g *guard) visitor(r *http.Request) visitor {
	if g.token == nil {
		return visitor{as: asAnonymous}
	}
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return visitor{as: asNobody}
	}
	if g.token.is(text) {
		return visitor{as: asToken}
	}
	if found, ok := g.sessions.find(text, g.token.now()); ok {
		return visitor{as: asSession, text: text, until: found.until}
	}
	return visitor{as: asNobody}
}

// access is what a path needs.
type access int

const (
	probe access = iota // for everybody
	page                // no data, but a name of ours
	data
)

func accessOf(path string) access {
	switch {
	case path == "/healthz" || path == "/readyz":
		return probe
	case path == "/metrics" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/debug/"):
		return data
	}
	return page
}

func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if problem := checkMethod(r); problem != nil {
			w.Header().Set("Allow", allowed(r.URL.Path))
			fail(w, problem)
			return
		}
		if problem := g.check(r); problem != nil {
			if problem.status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="tarn"`)
			}
			fail(w, problem)
			return
		}
		limitBodyTime(w, r)
		next.ServeHTTP(w, r)
	})
}

// allowed are the methods that a path answers.
func allowed(path string) string {
	switch path {
	case sqlPath:
		return "GET, HEAD, POST"
	case sessionPath:
		return "GET, HEAD, POST, DELETE"
	}
	return "GET, HEAD"
}

const sessionPath = "/api/session"

// checkMethod accepts requests that read, and requests about the caller's own session.
func checkMethod(r *http.Request) *failure {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return nil
	case r.URL.Path == sessionPath && (r.Method == http.MethodPost || r.Method == http.MethodDelete):
		return nil
	case r.Method != http.MethodPost || r.URL.Path != sqlPath:
		return &failure{http.StatusMethodNotAllowed, "this is read-only: GET and HEAD are answered"}
	case r.Header.Get("Content-Type") != "application/sql":
		return &failure{http.StatusUnsupportedMediaType, "a statement is sent with Content-Type: application/sql"}
	}
	return nil
}

func (g *guard) check(r *http.Request) *failure {
	needs, v := accessOf(r.URL.Path), g.visitor(r)
	if v.as == asToken {
		g.authenticated(r)
		return nil
	}
	if needs == probe {
		return nil
	}
	if !g.named(r.Host) {
		return &failure{http.StatusForbidden, fmt.Sprintf("this server is not known as %q: ask for localhost, or allow the name", r.Host)}
	}
	if !ownOrigin(r) && (needs != page || !navigation(r)) {
		return &failure{http.StatusForbidden, "the request comes from a page of another site"}
	}
	if needs != data {
		return nil
	}
	if v.as == asNobody {
		return &failure{http.StatusUnauthorized, "a token is needed: Authorization: Bearer …, or sign in on the page"}
	}
	g.authenticated(r)
	return nil
}

func (g *guard) authenticated(r *http.Request) {
	if g.connections != nil {
		g.connections.authenticated(r)
	}
}

// stillAuthenticated reports whether an accepted request would still be accepted: its session
// may have ended, and the token may have changed.
func (g *guard) stillAuthenticated(r *http.Request) bool { return g.visitor(r).as != asNobody }

// trusts reports whether the sender of a probe may read data.
func (g *guard) trusts(r *http.Request) bool {
	v := g.visitor(r)
	return v.as == asToken || v.as != asNobody && g.named(r.Host) && ownOrigin(r)
}

// named reports whether a Host header means us: this machine's loopback, an allowed name, or
// a name in our certificate.
func (g *guard) named(host string) bool {
	name := strings.ToLower(hostOf(host))
	switch {
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return true
	case net.ParseIP(name).IsLoopback():
		return true
	case slices.Contains(g.hosts, name):
		return true
	}
	if name == "" || g.certificate == nil {
		return false
	}
	leaf := g.certificate().Leaf
	return leaf != nil && leaf.VerifyHostname(name) == nil
}

// hostOf is a host without its port and brackets.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// ownOrigin reports whether a request comes from our page, from the address bar, or from a
// program that is not a browser.
func ownOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return false
	}
	text := r.Header.Get("Origin")
	if text == "" {
		return true
	}
	origin, err := url.Parse(text)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return err == nil && origin.Scheme == scheme && strings.EqualFold(origin.Host, r.Host)
}

// navigation reports that the request is for a page that a user navigates to.
func navigation(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
