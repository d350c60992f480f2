package web

import (
	"fmt"
	"net/http"
	"strings"
)

// alive answers /healthz: whether a restart of the program would help. An
// unreachable cluster is no reason for that.
func (s *Site) alive(w http.ResponseWriter, _ *http.Request) {
	if s.mirror != nil && closed(s.mirror.Done()) {
		probeAnswer(w, http.StatusServiceUnavailable, "the mirror has ended")
		return
	}
	probeAnswer(w, http.StatusOK, "ok")
}

// ready answers /readyz: whether every table is synced and fresh, of one cluster at least,
// and also on disk if it is kept there. The reasons go only to callers that may read the tables.
func (s *Site) ready(w http.ResponseWriter, r *http.Request) {
	reasons := s.unready()
	switch {
	case len(reasons) == 0:
		probeAnswer(w, http.StatusOK, "ok")
	case s.guard.trusts(r):
		probeAnswer(w, http.StatusServiceUnavailable, strings.Join(reasons, "\n"))
	default:
		probeAnswer(w, http.StatusServiceUnavailable, "not ready; ask with the token to learn why")
	}
}

func (s *Site) unready() []string {
	if s.relay != nil {
		if err := s.relay().NotReady; err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	return s.mirror.Unready(s.options.FreshWithin)
}

func probeAnswer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
