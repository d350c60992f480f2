package tarn

import "time"

// unreadable is about events that could not be read, or whose object could not be
// named: the copy may be wrong, and nobody can say where. Only a whole state helps.
//
// The first time it is read at once. Something that stays unreadable must not
// cost a list each time it is said, so after that once in a while is enough.
type unreadable struct {
	// due is when the state must be read anew, zero if it need not.
	due time.Time
	// paid is when that was last done.
	paid time.Time
}

const (
	// unreadableLists is how often, at most, unreadable events cost a list.
	unreadableLists = 10 * time.Minute
	// unnamedPatience is how long an object that could not be named is waited for
	// to be told again in words that can be read.
	unnamedPatience = time.Minute
)

// lost notes that something was said that could not be read, at all or but for
// its object.
func (u *unreadable) lost(now time.Time, atAll bool) {
	due := now
	if !atAll {
		due = now.Add(unnamedPatience)
	}
	if next := u.paid.Add(unreadableLists); !u.paid.IsZero() && due.Before(next) {
		due = next
	}
	if u.due.IsZero() || due.Before(u.due) {
		u.due = due
	}
}

// listed notes that a whole state was read, perhaps itself with items that could
// not be named.
func (u *unreadable) listed(now time.Time, keyless bool) {
	owed := !u.due.IsZero() && !now.Before(u.due)
	u.due = time.Time{}
	if owed || keyless {
		u.paid = now
	}
	if keyless {
		u.due = now.Add(unreadableLists)
	}
}

// owed says whether the state must be read anew now.
func (u *unreadable) owed(now time.Time) bool { return !u.due.IsZero() && !now.Before(u.due) }

// overdue ends the pass if a whole state is owed.
func (r *Reflector[T]) overdue() error {
	if !r.unreadable.owed(r.opts.Clock.Now()) {
		return nil
	}
	r.readNext(nextRead{cause: causeUnreadable, version: consistent, soon: true})
	return errRelist
}
