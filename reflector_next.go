package tarn

import "time"

// nextRead says why and how the whole state is read next. Every mechanism that needs a
// read adds to it with [Reflector.readNext]. It is reset when a state is written, so that
// failures do not lose it.
type nextRead struct {
	// cause is what Health.Lists counts the read under.
	cause string
	// version is what the answer's version must be.
	version versionRule
	// afresh compares content, and reuses nothing from earlier answers: after a recheck
	// was requested, or the source was replaced.
	afresh bool
	// shortWait says that the source has just answered, so that the wait before the pass
	// is short, even if the backoff has grown.
	shortWait bool
}

// versionRule is a condition on the version of a whole state. The later rules include
// the earlier ones.
type versionRule uint8

const (
	// notOlder accepts any version at first, then none older than the one reached.
	notOlder versionRule = iota
	// consistent asks for the current version: the one reached has expired, or cannot be
	// trusted.
	consistent
	// anyAfterRewind asks for the current version too, and accepts one older than the one
	// reached: the source went back in time. Equal versions of objects prove nothing.
	anyAfterRewind
)

// The causes of whole reads. The caller of Recheck gives its own.
const (
	causeStart       = "start"
	causeRestart     = "restart"
	causeWatchEnded  = "watch ended"
	causeExpired     = "expired"
	causeRewound     = "rewound"
	causeSilence     = "silence"
	causeUnreadable  = "unreadable"
	causeDamaged     = "damaged"
	causeOtherSource = "other source"
)

// readNext merges n into the next read. A cause replaces the one before, unless it is
// empty.
func (r *Reflector[T]) readNext(n nextRead) {
	if n.cause != "" {
		r.next.cause = n.cause
	}
	r.next.version = max(r.next.version, n.version)
	r.next.afresh = r.next.afresh || n.afresh
	r.next.shortWait = r.next.shortWait || n.shortWait
}

// expired asks for a consistent read, because the version reached has expired.
func (r *Reflector[T]) expired() {
	r.readNext(nextRead{cause: causeExpired, version: consistent, shortWait: true})
}

// byContent reports whether to compare content, because equal versions prove nothing.
func (n nextRead) byContent() bool { return n.afresh || n.version == anyAfterRewind }

// gapCause is the cause of the gap that the read leaves in the history of states.
func (n nextRead) gapCause() GapCause {
	if n.version == anyAfterRewind || n.cause == causeOtherSource {
		return GapRewound
	}
	return GapRead
}

// nextPass is the wait before a pass. It is short at most once per DefaultBackoff.Reset.
func (r *Reflector[T]) nextPass(err error) time.Duration {
	now, short := r.opts.Clock.Now(), r.next.shortWait
	r.next.shortWait = false
	if short && now.Sub(r.lastShortWait) > DefaultBackoff.Reset {
		r.lastShortWait = now
		return max(DefaultBackoff.Base+r.opts.Jitter(DefaultBackoff.Base), RetryAfter(err))
	}
	return max(r.opts.Delay(), RetryAfter(err))
}
