package tarn

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
	// forShard says that it is read only because another shard is wanted.
	forShard bool
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
	causeShard       = "shard"
)

// readNext merges n into the next read. A cause replaces the one before, unless it is
// empty.
func (r *Reflector[T]) readNext(n nextRead) {
	r.next.forShard = n.forShard && r.next == nextRead{cause: causeWatchEnded}
	if n.cause != "" {
		r.next.cause = n.cause
	}
	r.next.version = max(r.next.version, n.version)
	r.next.afresh = r.next.afresh || n.afresh
}

// expired asks for a read because the version reached has expired. It is read at that
// version first, which the source can serve from memory: after an outage thousands of
// copies may do so at once. If the watch from the version that was read expires too, the
// next read is consistent.
func (r *Reflector[T]) expired() {
	version := notOlder
	if r.version == r.expiredAt {
		version = consistent
	}
	r.expiredAt = r.version
	r.readNext(nextRead{cause: causeExpired, version: version})
	r.waits.restart()
}

// tooNew asks for a consistent read, because the source has not reached the version: it
// lags, or went back in time.
func (r *Reflector[T]) tooNew() {
	r.readNext(nextRead{cause: causeExpired, version: consistent})
	r.waits.restart()
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
