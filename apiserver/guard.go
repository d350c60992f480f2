package apiserver

import (
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetTokens replaces the accepted bearer tokens. With none, every request is
// refused, even by a server that was made without tokens and accepted everyone.
// Open watches continue: a token is checked when a request begins.
func (s *Server) SetTokens(tokens ...string) {
	tokens = slices.Clone(tokens)
	s.tokens.Store(&tokens)
}

// token is one that clients of this server may use; empty if none is needed.
func (s *Server) token() string {
	if tokens := s.tokens.Load(); tokens != nil && len(*tokens) > 0 {
		return (*tokens)[0]
	}
	return ""
}

// authenticate accepts requests with one of the tokens.
func (s *Server) authenticate(r *http.Request) error {
	tokens := s.tokens.Load()
	if tokens == nil {
		return nil
	}
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if found {
		for _, token := range *tokens {
			if subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 {
				return nil
			}
		}
	}
	return apierrors.NewUnauthorized("Unauthorized")
}

// guarded keeps web pages out of a server that everybody on this machine may
// use: a page that a browser shows can send requests to it, from the page's own
// origin or under a name that was made to lead here. API clients do neither.
func (s *Server) guarded() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.tokens.Load() == nil && ofWebPage(r) {
			sendError(w, r, fault(http.StatusForbidden, metav1.StatusReasonForbidden,
				"requests of web pages, or for another host than this one, are not served without a token"))
			return
		}
		s.ServeHTTP(w, r)
	})
}

func ofWebPage(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return !loopback(strings.Trim(host, "[]")) || r.Header.Get("Origin") != ""
}
