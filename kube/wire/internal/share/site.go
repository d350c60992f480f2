package share

import "github.com/tarnproject/tarn/kube/wire/internal/shape"

// site is what a worker knows of the parts in one field.
//
// Consecutive objects often have one owner, and the nth part in a field then
// equals that of the object before. Comparing the two needs no hash, and finds
// them equal nine times in ten (real pods, in a list's order).
//
// Where parts never repeat, lookups pause for a while, and are then tried again
// a few times: a field may begin to repeat, as when the objects of another
// owner come. A hit outweighs several misses: it saves memory for as long as
// the object lives, and a miss costs ten to some hundred nanoseconds once.
//
// It is not a [recent.Repetition], which needs one hit in eight and starts over with
// each round: here one hit in twelve is enough, and hits count for later misses.
type site struct {
	skip    uint32                 // how many parts are not looked up
	epoch   uint32                 // the latest object
	seen    uint16                 // how many parts of it have been seen
	balance int16                  // misses, less what hits make up for
	pauses  uint16                 // pauses since the last hit
	last    [lastSeen]shape.Memory // the parts of the latest object
}

const (
	lastSeen = 4

	hitWorth   = 12  // misses that a hit makes up for
	minBalance = -96 // hits count for at most so many misses
	pauseAt    = 48
	retries    = 12 // misses after a pause that lead to the next one
	firstPause = 256
	maxPauses  = 7 // the longest is 256 << 7 parts
)

// next is the slot of the previous object's part that the next part of this
// object is compared with.
func (s *site) next(epoch uint32) *shape.Memory {
	if s.epoch != epoch {
		s.epoch, s.seen = epoch, 0
	}
	p := &s.last[s.seen%lastSeen]
	s.seen++
	return p
}

// skips says whether the next part is not looked up.
func (s *site) skips() bool {
	if s.skip == 0 {
		return false
	}
	s.skip--
	return true
}

func (s *site) hit() {
	s.pauses = 0
	s.balance = max(s.balance-hitWorth, minBalance)
}

func (s *site) miss() {
	if s.balance++; s.balance < pauseAt {
		return
	}
	s.balance = pauseAt - retries
	s.skip = firstPause << s.pauses
	s.pauses = min(s.pauses+1, maxPauses)
}
