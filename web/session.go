package web

import (
	"encoding/hex"
	"net/http"
)

// session answers /api/session: it exchanges the token in the Authorization
// header for a cookie, because a browser's event streams cannot send headers.
//
// The cookie is made from the token, so that it holds when the program is
// started anew with the same one; the token cannot be made from it. It ends with
// the browser.
func (s *Site) session(w http.ResponseWriter, r *http.Request) {
	if s.guard.token != nil && s.guard.bearer(r) {
		http.SetCookie(w, &http.Cookie{
			Name:     cookieName(r),
			Value:    hex.EncodeToString(digest("cookie", s.options.Token)),
			Path:     "/",
			HttpOnly: true,
			SameSite: http.SameSiteStrictMode,
			Secure:   r.TLS != nil,
		})
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// cookieName has the prefix that browsers tie to this very host, where they
// allow it.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-tarn"
	}
	return "tarn"
}
