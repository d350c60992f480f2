package tarn

import "time"

// nextRead says why the whole state is read next, and how. Whatever finds that it must
// be read adds to it with [Reflector.readNext]; it holds until a state has been taken,
// through any number of failures.
type nextRead struct {
	// cause is what Health.Lists counts the read under.
	cause string
	// version is what the answer's version must be.
	version versionRule
	// afresh says that the content is compared, and nothing used again that was made for
	// earlier answers: someone asked for a recheck, or the source is another one.
	afresh bool
	// soon says that the source has just answered, so that there is no need to wait for
	// long, however long waits had become while it was away.
	soon bool
}

// versionRule is what the version of a whole state must be. The later rules include the
// earlier ones.
type versionRule uint8

const (
	// notOlder wants any version at first, then none older than the one reached.
	notOlder versionRule = iota
	// consistent wants the present one: the version reached has expired, or may not be
	// trusted.
	consistent
	// anyAfterRewind wants the present one too, and takes one that is older than the one
	// reached: the source went back. Equal versions of objects prove nothing.
	anyAfterRewind
)

// The causes of whole reads. A recheck has that of whoever asked for it.
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

// readNext adds to how the state is read next. The last cause counts; an empty one
// leaves that as it was.
func (r *Reflector[T]) readNext(n nextRead) {
	if n.cause != "" {
		r.next.cause = n.cause
	}
	r.next.version = max(r.next.version, n.version)
	r.next.afresh = r.next.afresh || n.afresh
	r.next.soon = r.next.soon || n.soon
}

// expired notes that the version reached cannot be followed any more.
func (r *Reflector[T]) expired() {
	r.readNext(nextRead{cause: causeExpired, version: consistent, soon: true})
}

// byContent says that equal versions prove nothing.
func (n nextRead) byContent() bool { return n.afresh || n.version == anyAfterRewind }

// gapCause is what states that the read cannot bring are missed by.
func (n nextRead) gapCause() GapCause {
	if n.version == anyAfterRewind || n.cause == causeOtherSource {
		return GapRewound
	}
	return GapRead
}

// nextPass is how long to wait before a pass. The wait is not made short twice in a row.
func (r *Reflector[T]) nextPass(err error) time.Duration {
	now, soon := r.opts.Clock.Now(), r.next.soon
	r.next.soon = false
	if soon && now.Sub(r.shortened) > DefaultBackoff.Reset {
		r.shortened = now
		return max(DefaultBackoff.Base+r.opts.Jitter(DefaultBackoff.Base), RetryAfter(err))
	}
	return max(r.opts.Delay(), RetryAfter(err))
}
