package tarn

import "time"

const (
	// probeAfter is how long after a broken connection a watch may bring nothing before
	// the source is probed, prolonged by up to probeSpread. Sources send a bookmark about
	// every minute, which answers the question without a request: if a probe came
	// earlier, a server that restarts would get one from each of its quiet watches.
	probeAfter  = 60 * time.Second
	probeSpread = 15 * time.Second

	// firstOlderPause and maxOlderPause limit the probes because of older versions.
	firstOlderPause = 10 * time.Second
	maxOlderPause   = 10 * time.Minute
)

// suspicion is whether the source may have gone back in time, and when to ask it.
//
// A broken connection raises it, because a server that is restored from a backup breaks
// them all. Then any version that is not older than the one reached settles it; if none
// arrives for about a minute, a probe does.
//
// An older version raises it too, and is probed at once. From a source whose versions
// are numbers without an order each event could be older than the last, so the pause
// between such probes grows while they find nothing.
type suspicion struct {
	raised bool
	// due is when the source is probed; zero until a watch is open.
	due time.Time
	// olderPause is the pause after the last probe because of an older version, and
	// olderAfter its end.
	olderPause time.Duration
	olderAfter time.Time
}

// raise records a broken connection.
func (s *suspicion) raise() { s.raised = true }

// settle records that the source is at the version reached, or at a newer one.
func (s *suspicion) settle() { s.raised, s.due = false, time.Time{} }

// watching sets the time of the probe when a watch has been opened. It does not set it again
// with each watch, or a source whose watches break every minute would never be probed.
func (s *suspicion) watching(now time.Time, jitter func(time.Duration) time.Duration) {
	switch {
	case !s.raised:
	case s.due.IsZero():
		s.due = now.Add(probeAfter + jitter(probeSpread))
	case s.due.Before(now):
		s.due = now.Add(jitter(probeSpread))
	}
}

// sawOlder records a version older than the one reached, and reports whether to probe
// at once.
func (s *suspicion) sawOlder(now time.Time) bool {
	s.raised = true
	if now.Before(s.olderAfter) {
		if s.due.IsZero() || s.olderAfter.Before(s.due) {
			s.due = s.olderAfter
		}
		return false
	}
	s.olderPause = min(max(2*s.olderPause, firstOlderPause), maxOlderPause)
	s.olderAfter = now.Add(s.olderPause)
	s.due = now // if the probe gets no answer, another follows
	return true
}

// rewound records that the source did go back: the next older version is probed at once
// again.
func (s *suspicion) rewound() { s.olderPause, s.olderAfter = 0, time.Time{} }

// probeDue reports whether the time of the probe has come.
func (s *suspicion) probeDue(now time.Time) bool {
	return s.raised && !s.due.IsZero() && !now.Before(s.due)
}
