package wire

import (
	"bytes"
	"math/bits"
)

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

// habits are what a reader knows of all fields, and what it met last in them. The
// former is small, so that a field at rest costs one look at it.
type habits struct {
	known []habit
	past  []habit
	last  []lastContent
	kept  int // bytes in last
}

// lastContent is what was met last in a field: its text, or the parts that were
// found in the pool, with their bytes, by length.
type lastContent struct {
	word  string
	parts *[4]lastPart
}

type lastPart struct {
	raw []byte
	part
}

// lastBytes is the size up to which bytes are kept for comparison, lastTotal how
// much of them a reader keeps before it begins anew.
const (
	lastBytes = 16 << 10
	lastTotal = 512 << 10
)

// of returns the place of a field with content of about this size: where a list has
// two kinds of entries, one that repeats and one that does not, they mostly differ
// in it.
func (h *habits) of(f *protoField, size int) int {
	i := int(f.stat)*4 + bits.Len(uint(size))%4
	if i >= len(h.known) {
		more := i + 64 - len(h.known)
		h.known = append(h.known, make([]habit, more)...)
		h.past = append(h.past, make([]habit, more)...)
		h.last = append(h.last, make([]lastContent, more)...)
	}
	return i
}

// recall finds a part among the last. To compare bytes takes a tenth of the time of
// hashing them, and in a list the next object is often like the last one.
func (h *habits) recall(i int, raw []byte) part {
	parts := h.last[i].parts
	if parts == nil {
		return part{}
	}
	if l := &parts[len(raw)%len(parts)]; l.ptr != nil && bytes.Equal(l.raw, raw) {
		return l.part
	}
	return part{}
}

// forget lets all go that was met last.
func (h *habits) forget() {
	clear(h.last)
	h.kept = 0
}

// remember makes a part one of the last. It must have been found in the pool, which
// then knows that it is shared.
func (h *habits) remember(i int, raw []byte, x part) {
	if len(raw) > lastBytes {
		return
	}
	if h.kept > lastTotal {
		h.forget()
	}
	if h.last[i].parts == nil {
		h.last[i].parts = new([4]lastPart)
	}
	l := &h.last[i].parts[len(raw)%4]
	h.kept -= cap(l.raw)
	l.raw, l.part = append(l.raw[:0], raw...), x
	h.kept += cap(l.raw)
}
