package tarn

import "time"

// unreadable records events that could not be read, or whose object has no readable
// key. The copy may then be wrong in an unknown place, and only a read of the whole
// state helps.
//
// The first such event causes a read at once. An object that stays unreadable must not
// cost a list for each of its events, so later reads are rare.
type unreadable struct {
	// due is when the whole state must be read, zero if it need not.
	due time.Time
	// lastList is when that was last done.
	lastList time.Time
}

const (
	// unreadableLists is the least time between two lists because of unreadable events.
	unreadableLists = 10 * time.Minute
	// unnamedDelay is the wait for a later, readable event of an object without a
	// readable key.
	unnamedDelay = time.Minute
)

// record sets due after an event that could not be decoded at all, or whose object has
// no readable key.
func (u *unreadable) record(now time.Time, undecodable bool) {
	due := now
	if !undecodable {
		due = now.Add(unnamedDelay)
	}
	if next := u.lastList.Add(unreadableLists); !u.lastList.IsZero() && due.Before(next) {
		due = next
	}
	if u.due.IsZero() || due.Before(u.due) {
		u.due = due
	}
}

// listed records that a whole state was read; keyless says that it had items without a
// readable key.
func (u *unreadable) listed(now time.Time, keyless bool) {
	wasDue := u.relistDue(now)
	u.due = time.Time{}
	if wasDue || keyless {
		u.lastList = now
	}
	if keyless {
		u.due = now.Add(unreadableLists)
	}
}

// relistDue reports whether the whole state must be read now.
func (u *unreadable) relistDue(now time.Time) bool { return !u.due.IsZero() && !now.Before(u.due) }

// relistIfDue ends the pass if the whole state must be read now.
func (r *Reflector[T]) relistIfDue() error {
	if !r.unreadable.relistDue(r.opts.Clock.Now()) {
		return nil
	}
	r.readNext(nextRead{cause: causeUnreadable, version: consistent})
	r.waits.restart()
	return errRelist
}
