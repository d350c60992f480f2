package apiserver

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// authenticate lets in who has one of the tokens.
func (s *Server) authenticate(r *http.Request) error {
	if len(s.options.Tokens) == 0 {
		return nil
	}
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if found {
		for _, token := range s.options.Tokens {
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
	if len(s.options.Tokens) > 0 {
		return s
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !loopback(strings.Trim(host, "[]")) || r.Header.Get("Origin") != "" {
			sendError(w, r, fault(http.StatusForbidden, metav1.StatusReasonForbidden,
				"requests of web pages, or for another host than this one, are not served without a token"))
			return
		}
		s.ServeHTTP(w, r)
	})
}
