package web

import (
	"net/http"
	"time"
)

// answered records the status and size of an answer, for the access log.
type answered struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Unwrap lets http.ResponseController find what the connection can do.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader notes the status.
func (a *answered) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answered) Write(data []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(data)
	a.bytes += int64(n)
	return n, err
}

// logged writes a line per request once it is answered. It leaves out the query and
// the headers, which may hold search texts and tokens.
func (s *Site) logged(next http.Handler) http.Handler {
	if s.options.AccessLog == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, as := time.Now(), s.guard.visitor(r).as
		a := &answered{ResponseWriter: w}
		defer func() {
			s.options.AccessLog.InfoContext(r.Context(), "request",
				"remote", r.RemoteAddr, "as", as, "method", r.Method, "host", r.Host, "path", r.URL.Path,
				"status", a.status, "bytes", a.bytes, "took", time.Since(began).Round(time.Microsecond).String())
		}()
		next.ServeHTTP(a, r)
	})
}
