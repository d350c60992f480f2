package mirror

import (
	"fmt"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/render"
)

// longestReason bounds what a reason shows of an error, which may be a server's answer.
const longestReason = 4000

// Unready says why the mirror is not ready, with a line for each reason: tables that are not
// synced or not fresh, in all clusters of a fleet, and a disk or an engine that is too far
// behind its table. It returns nothing if the mirror is ready.
func (m *Mirror) Unready(within time.Duration) (reasons []string) {
	if ended(m.Done()) {
		reasons = append(reasons, "the mirror has ended")
	}
	for _, table := range m.Tables() {
		name, h := table.Resource().Name(), table.Replica().Health()
		if !h.Fresh(within) && !(m.Fleet() && someFresh(h, within)) {
			reasons = append(reasons, name+": "+staleness(h, within))
		}
		if h.Disk != nil && h.Disk.Lag > within {
			reasons = append(reasons, name+": the copy on disk, which SQL reads, is too old: "+h.Disk.String())
		}
		for _, sink := range h.Sinks {
			if sink.Lag > within && (h.Disk == nil || sink.Name != h.Disk.Name) {
				reasons = append(reasons, name+": the copy in "+sink.Name+" is too old: "+render.CutNote(sink.String(), longestReason))
			}
		}
	}
	return reasons
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// someFresh reports whether one of several clusters is followed: one unavailable cluster is
// no reason to hide the others.
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
		why += fmt.Sprintf("; failing since %s: %s", h.ErrSince.Format(time.RFC3339), render.CutNote(h.Err.Error(), longestReason))
	}
	return why
}
