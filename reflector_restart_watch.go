package tarn

import "time"

// firstCatchUpWatch is the timeout of the first watch after a restart. A server's version
// advances with all of its content, so a quiet collection reaches it only by a bookmark.
// API servers send one a minute, and one two seconds before a watch ends. A short watch
// therefore shows within a second or two that nothing happened, instead of within a
// minute.
//
// Why not a stream with initial events, whose end is marked at once: that is as
// expensive as a list.
const firstCatchUpWatch = 3 * time.Second

// watchFor is the timeout of the next watch: the usual one, which spreads the ends of
// watches, or a short one while a copy from disk catches up.
func (r *Reflector[T]) watchFor() time.Duration {
	usual := r.watchTimeout()
	if r.restart.target == "" {
		return usual
	}
	return min(usual, r.restart.watch)
}

// lastCatchUpWatch is the timeout of the last catch-up watch, which ends 21 s after the
// first began. If it is silent too, the source sends no bookmarks, and no watch can show
// that nothing happened.
const lastCatchUpWatch = 4 * firstCatchUpWatch

// catchUpWatchEnded records the end of a watch. While the copy catches up the next one is
// longer. It returns false when a list is the better choice.
func (r *Reflector[T]) catchUpWatchEnded(events int) bool {
	if r.restart.target == "" {
		return true
	}
	if events == 0 && r.restart.watch >= lastCatchUpWatch {
		r.next.cause = causeRestart
		return false
	}
	r.restart.watch *= 2
	return true
}

// mayCatchUpByWatch is called after a silent watch that did not end in time. It returns
// false while a copy from disk catches up: another watch would be no better.
func (r *Reflector[T]) mayCatchUpByWatch() bool {
	if r.restart.target == "" {
		return true
	}
	r.next.cause = causeRestart
	return false
}
