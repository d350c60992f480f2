package recent

// A field is tried roundTries times. If fewer than rareHits of them were found,
// parts go to the pool only when they are met for the second time; if fewer than
// minHits, the field rests, longer and longer while nothing changes.
const (
	roundTries = 32
	rareHits   = 12
	minHits    = 4
	firstPause = 128
	maxPauses  = 5
)

// Repetition is what a reader knows of how often a field's content repeats.
//
// Parts that never repeat (names, conditions with their times) would pay for being
// hashed, looked up and put into the pool; after a while they are only tried now
// and then. They are tried in a row, not here and there, because equal objects come
// next to each other in lists.
type Repetition struct {
	tries, hits, pauses uint8
	Rare                bool
	skip                uint16
}

// Try says whether the next content is to be looked up.
func (h *Repetition) Try() bool {
	if h.skip == 0 {
		return true
	}
	h.skip--
	return false
}

// Record notes whether a content that was looked up was there.
func (h *Repetition) Record(hit bool) {
	if hit {
		h.hits++
	}
	if h.tries++; h.tries < roundTries {
		return
	}
	if h.hits < minHits {
		h.skip = firstPause << h.pauses
		h.pauses = min(h.pauses+1, maxPauses)
	} else {
		h.pauses = 0
	}
	h.Rare = h.pauses == 0 && h.hits < rareHits
	h.tries, h.hits = 0, 0
}
