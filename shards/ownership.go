package shards

import (
	"slices"
	"sync"
	"time"
)

// ownership is what the workers of a process ask. The member's loop writes it.
//
// Work that has begun is counted, so that a slot is handed over only when nobody works on
// its objects. Work is bounded in time by validUntil alone: a process that cannot renew its
// Lease cannot tell anybody either.
type ownership struct {
	now  func() time.Time
	idle func() // is called when work has ended on a slot that is to be handed over, or is lost

	mu         sync.Mutex
	validUntil time.Time
	slots      [slotCount]owned
}

type owned struct {
	// owner says that the slot is owned, releasing that no more work may begin.
	owner, releasing bool
	// refused says that work on the slot was refused although it was owned.
	refused bool
	working int
}

// begin counts work on a slot. It returns false if the slot is not owned.
func (o *ownership) begin(slot int) bool {
	now := o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.slots[slot]
	if !s.owner || s.releasing || !now.Before(o.validUntil) {
		s.refused = s.owner
		return false
	}
	s.working++
	return true
}

// end ends what begin began.
func (o *ownership) end(slot int) {
	o.mu.Lock()
	s := &o.slots[slot]
	s.working--
	idle := (s.releasing || !s.owner) && s.working == 0
	o.mu.Unlock()
	if idle {
		o.idle()
	}
}

func (o *ownership) owns(slot int) bool {
	now := o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.slots[slot]
	return s.owner && !s.releasing && now.Before(o.validUntil)
}

// renewed moves the time until which work may begin.
func (o *ownership) renewed(until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.validUntil = until
}

func (o *ownership) until() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.validUntil
}

// release lets no more work on a slot begin, and reports whether all has ended.
func (o *ownership) release(slot int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots[slot].releasing = true
	return o.slots[slot].working == 0
}

// set says which slots are owned. It returns those that were not before, and how many are
// no more. A slot that is kept after all is released no more.
func (o *ownership) set(owner, keep func(slot int) bool) (gained []int, lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.slots {
		s := &o.slots[i]
		if owner(i) && !s.owner {
			gained = append(gained, i)
		} else if s.owner && !owner(i) {
			lost++
		}
		s.refused = s.refused && owner(i)
		s.owner = owner(i)
		s.releasing = s.releasing && s.owner && !keep(i)
	}
	return gained, lost
}

// again returns the slots on which work was refused for a while, though they stayed owned,
// and may begin now: the Lease could not be renewed in time, or the slot was about to be
// handed over to a member that is gone. It returns each once.
func (o *ownership) again() (slots []int) {
	now := o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.slots {
		if s := &o.slots[i]; s.refused && !s.releasing && now.Before(o.validUntil) {
			slots, s.refused = append(slots, i), false
		}
	}
	return slots
}

// keeps reports whether a slot was owned, and is not about to be given up.
func (o *ownership) keeps(slot int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.slots[slot].owner && !o.slots[slot].releasing
}

// busy reports whether somebody works on a slot.
func (o *ownership) busy(slot int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.slots[slot].working > 0
}

// stray reports whether there is work on a slot that is not owned.
func (o *ownership) stray() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.slots[:], func(s owned) bool { return !s.owner && s.working > 0 })
}

// working counts the work that has not ended.
func (o *ownership) working() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.slots {
		n += s.working
	}
	return n
}
