package wire

// A field is tried habitTries times. If fewer than habitWary of them were found,
// parts go to the pool only when they are met for the second time; if fewer than
// habitHits, the field rests, longer and longer while nothing changes.
const (
	habitTries = 32
	habitWary  = 12
	habitHits  = 4
	habitRest  = 128
	habitRests = 5
)

// habit is what a reader knows of how often a field's content repeats.
//
// Parts that never repeat (names, conditions with their times) would pay for being
// hashed, looked up and put into the pool; after a while they are only tried now
// and then. They are tried in a row, not here and there, because equal objects come
// next to each other in lists.
type habit struct {
	tries, hits, rests uint8
	wary               bool
	rest               uint16
}

// due says whether the next content is to be looked up.
func (h *habit) due() bool {
	if h.rest == 0 {
		return true
	}
	h.rest--
	return false
}

// saw notes whether a content that was looked up was there.
func (h *habit) saw(hit bool) {
	if hit {
		h.hits++
	}
	if h.tries++; h.tries < habitTries {
		return
	}
	if h.hits < habitHits {
		h.rest = habitRest << h.rests
		h.rests = min(h.rests+1, habitRests)
	} else {
		h.rests = 0
	}
	h.wary = h.rests == 0 && h.hits < habitWary
	h.tries, h.hits = 0, 0
}
