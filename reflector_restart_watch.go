package tarn

import "time"

// firstShortWatch is how long the first watch after a restart is asked for. The
// version that a server tells moves on with everything else it holds, so that a
// quiet collection comes to it only by a bookmark. API servers send one a minute,
// and one two seconds before a watch is over: so a short watch is told within a
// second or two that nothing happened, and a minute is not waited for.
//
// Why not a stream that begins with the collection, whose end is marked at once:
// that is a list.
const firstShortWatch = 3 * time.Second

// watchFor is how long the next watch is asked for: the usual time, which spreads
// the ends of watches; a short one while a copy from disk catches up.
func (r *Reflector[T]) watchFor() time.Duration {
	usual := r.watchTimeout()
	if r.restart.target == "" {
		return usual
	}
	return min(usual, r.restart.watch)
}

// lastShortWatch is how long the last of the short watches is, 21 s after the first
// began, which may be told nothing at all: a source that sends no bookmarks cannot
// say that nothing happened.
const lastShortWatch = 4 * firstShortWatch

// shortWatchEnded notes that a watch is over. While the copy catches up the next one is
// longer; false says that it had better be listed.
func (r *Reflector[T]) shortWatchEnded(events int) bool {
	if r.restart.target == "" {
		return true
	}
	if events == 0 && r.restart.watch >= lastShortWatch {
		r.next.cause = causeRestart
		return false
	}
	r.restart.watch *= 2
	return true
}

// mayWatchShortlyAgain is false after a watch that was asked to be short, never ended and
// said nothing, while a copy from disk catches up: another one would be no better.
func (r *Reflector[T]) mayWatchShortlyAgain() bool {
	if r.restart.target == "" {
		return true
	}
	r.next.cause = causeRestart
	return false
}
