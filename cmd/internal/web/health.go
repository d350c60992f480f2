package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/render"
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
	var reasons []string
	if s.relay != nil {
		if err := s.relay().NotReady; err != nil {
			reasons = append(reasons, err.Error())
		}
		return reasons
	}
	if closed(s.mirror.Done()) {
		reasons = append(reasons, "the mirror has ended")
	}
	for _, table := range s.mirror.Tables() {
		h := table.Replica().Health()
		if !h.Fresh(s.options.FreshWithin) && !(s.mirror.Fleet() && someFresh(h, s.options.FreshWithin)) {
			reasons = append(reasons, table.Resource().Name()+": "+staleness(h, s.options.FreshWithin))
		}
		if h.Disk != nil && h.Disk.Lag > s.options.FreshWithin {
			reasons = append(reasons, table.Resource().Name()+": what is on disk, and in SQL, is too old: "+h.Disk.String())
		}
	}
	return reasons
}

// someFresh says whether one of several clusters is followed: one that is away is no reason
// to hide the others.
func someFresh(h tarn.Health, within time.Duration) bool {
	return slices.ContainsFunc(h.Sections, func(section tarn.Health) bool { return section.Fresh(within) })
}

func staleness(h tarn.Health, within time.Duration) string {
	var why string
	switch {
	case !h.Synced:
		why = fmt.Sprintf("not synced, %s", h.State)
	case h.Age > within:
		why = fmt.Sprintf("last contact with the server %s ago, more than %s", h.Age.Round(time.Second), within)
	default:
		why = h.State.String()
	}
	if h.Err != nil {
		why += fmt.Sprintf("; failing since %s: %s", h.ErrSince.Format(time.RFC3339), render.CutNote(h.Err.Error(), maxError))
	}
	return why
}

func probeAnswer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
