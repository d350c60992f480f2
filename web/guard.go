package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard decides who is answered. In this order:
//
//   - Only GET and HEAD, since nothing here changes anything; and POST where a
//     statement of SQL is sent, which changes nothing either. It must say that it
//     is one (application/sql), which the form of a foreign page cannot.
//   - A request must name this server in its Host header. A page of a foreign
//     site whose name was bound to our address (DNS rebinding) does not.
//   - It must come from our own page or from no page at all. Links of other
//     sites may lead to the page itself, not to data.
//   - With a token set, data needs it.
//
// A right token in the Authorization header is enough for the second and third:
// no foreign page can know it. Probes are answered to everybody, without detail.
type guard struct {
	hosts []string
	// leaf is our certificate, which also says how we are called.
	leaf *x509.Certificate
	// token and session are digests, nil if there is no token.
	token, session []byte
}

func newGuard(token string, hosts []string) *guard {
	g := &guard{}
	for _, host := range hosts {
		g.hosts = append(g.hosts, strings.ToLower(hostOf(host)))
	}
	if token != "" {
		g.token = digest("token", token)
		g.session = digest("session", hex.EncodeToString(digest("cookie", token)))
	}
	return g
}

// digest makes two strings comparable in a time that tells nothing of them.
func digest(purpose, text string) []byte {
	sum := sha256.Sum256([]byte("tarn web " + purpose + "\x00" + text))
	return sum[:]
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
			w.Header().Set("Allow", "GET, HEAD")
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
		next.ServeHTTP(w, r)
	})
}

// checkMethod lets pass what reads.
func checkMethod(r *http.Request) *failure {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return nil
	case r.Method != http.MethodPost || r.URL.Path != sqlPath:
		return &failure{http.StatusMethodNotAllowed, "this is read-only: GET and HEAD are answered"}
	case r.Header.Get("Content-Type") != "application/sql":
		return &failure{http.StatusUnsupportedMediaType, "a statement is sent with Content-Type: application/sql"}
	}
	return nil
}

func (g *guard) check(r *http.Request) *failure {
	needs := accessOf(r.URL.Path)
	if needs == probe || g.bearer(r) {
		return nil
	}
	if !g.named(r.Host) {
		return &failure{http.StatusForbidden, fmt.Sprintf("this server is not known as %q: ask for localhost, or allow the name", r.Host)}
	}
	if !ownOrigin(r) && (needs != page || !navigation(r)) {
		return &failure{http.StatusForbidden, "the request comes from a page of another site"}
	}
	if needs == data && g.token != nil && !g.cookie(r) {
		return &failure{http.StatusUnauthorized, "a token is needed: Authorization: Bearer …, or sign in on the page"}
	}
	return nil
}

// trusts says whether somebody who asks a probe may read data.
func (g *guard) trusts(r *http.Request) bool {
	return g.bearer(r) || g.named(r.Host) && ownOrigin(r) && (g.token == nil || g.cookie(r))
}

func (g *guard) bearer(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && g.token != nil && subtle.ConstantTimeCompare(digest("token", token), g.token) == 1
}

func (g *guard) cookie(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName(r))
	return err == nil && subtle.ConstantTimeCompare(digest("session", cookie.Value), g.session) == 1
}

// named says whether a Host header means us: this machine's loopback, a name
// that was allowed, or one of our certificate.
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
	return name != "" && g.leaf != nil && g.leaf.VerifyHostname(name) == nil
}

// hostOf is a host without its port and brackets.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// ownOrigin says that a request comes from our page, from the address bar, or
// from a program that is no browser.
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

// navigation says that somebody followed a link to look at what is there.
func navigation(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
