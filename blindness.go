package tarn

import "time"

// blindness is what a reflector knows that it does not know: something was said
// about an object that could not be named, so that the copy may be wrong without
// anyone being able to say where. Only a whole state helps.
//
// The first time it is read at once. Something that stays unreadable must not
// cost a list each time it is said, so after that once in a while is enough.
type blindness struct {
	// due is when the state must be read anew, zero if it need not.
	due time.Time
	// paid is when that was last done.
	paid time.Time
}

const (
	// blindLists is how often, at most, unreadable words cost a list.
	blindLists = 10 * time.Minute
	// blindPatience is how long an object that could not be named is waited for
	// to be told again in words that can be read.
	blindPatience = time.Minute
)

// lost notes that something was said that could not be read, at all or but for
// its object.
func (b *blindness) lost(now time.Time, atAll bool) {
	due := now
	if !atAll {
		due = now.Add(blindPatience)
	}
	if next := b.paid.Add(blindLists); !b.paid.IsZero() && due.Before(next) {
		due = next
	}
	if b.due.IsZero() || due.Before(b.due) {
		b.due = due
	}
}

// listed notes that a whole state was read, perhaps itself with items that could
// not be named.
func (b *blindness) listed(now time.Time, keyless bool) {
	owed := !b.due.IsZero() && !now.Before(b.due)
	b.due = time.Time{}
	if owed || keyless {
		b.paid = now
	}
	if keyless {
		b.due = now.Add(blindLists)
	}
}

// owed says whether the state must be read anew now.
func (b *blindness) owed(now time.Time) bool { return !b.due.IsZero() && !now.Before(b.due) }

// overdue ends the pass if a whole state is owed.
func (r *Reflector[T]) overdue() error {
	if !r.blind.owed(r.opts.Clock.Now()) {
		return nil
	}
	r.lost, r.hurry = true, true
	r.cause = "unreadable"
	return errRelist
}
