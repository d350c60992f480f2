package recent

// A field is tried in rounds of roundTries. With fewer than rareHits hits, its parts go to
// the pool only when they are seen for the second time. With fewer than minHits, the field
// pauses, longer and longer while nothing changes.
const (
	roundTries = 32
	rareHits   = 12
	minHits    = 4
	firstPause = 128
	maxPauses  = 5
)

// Repetition is a statistic of how often the content of a field repeats.
//
// Content that never repeats (names, conditions with their times) would be hashed,
// looked up and put into the pool for nothing; after a while it is only tried now
// and then. It is tried several times in a row, because equal objects are
// neighbours in lists.
type Repetition struct {
	tries, hits uint8 // of this round
	pauses      uint8 // in a row
	// Rare says that hits are rare, so that parts are admitted only when they are
	// seen a second time.
	Rare bool
	skip uint16 // how many contents are not looked up
}

// Try says whether to look up the next content. It counts what it skips.
func (h *Repetition) Try() bool {
	if h.skip == 0 {
		return true
	}
	h.skip--
	return false
}

// Record counts a content that was looked up, and whether it was found.
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
