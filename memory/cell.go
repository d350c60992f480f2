package memory

import (
	"strings"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// cell is the fixed location of one object, from its add to its delete.
//
// Readers follow head without a lock. page, term0 and more belong to the writer:
// the values under which the index of each slot has the object. They are remembered
// because they cannot be computed later: an index function may return something
// else, and a program may change an object that is stored. One slot is inline
// because most stores have one index or none; so a cell takes 48 bytes, and 80 with
// up to four indexes.
type cell[T any] struct {
	key   tarn.Key
	head  atomic.Pointer[version[T]]
	page  *page
	term0 *term
	more  *moreTerms
}

// moreTerms are the terms of the slots after the first one.
type moreTerms struct {
	terms [3]*term
	next  *moreTerms
}

// version is an object in one state, with the version before it for as long as a
// reader may need that. A version without a predecessor is published: until then it
// has at least the nothing that a new cell starts with.
type version[T any] struct {
	object T
	// stamp is twice the number of the state that wrote it, plus one if the write
	// was a delete.
	stamp  uint64
	before atomic.Pointer[version[T]]
}

func (v *version[T]) seq() uint64   { return v.stamp >> 1 }
func (v *version[T]) deleted() bool { return v.stamp&1 == 1 }

// nothing is the stamp of the version before a cell's first one.
const nothing = 1

func (c *cell[T]) sortKey() string { return string(c.key) }
func (c *cell[T]) setPage(p *page) { c.page = p }

// at is the version that state seq shows, nil if it has none.
func (c *cell[T]) at(seq uint64) *version[T] {
	v := c.head.Load()
	for v != nil && v.seq() > seq {
		v = v.before.Load()
	}
	if v != nil && v.stamp == nothing {
		return nil
	}
	return v
}

// term is the cell's term in the index of a slot, nil for none.
func (c *cell[T]) term(slot int) *term {
	if slot == 0 {
		return c.term0
	}
	slot--
	for m := c.more; m != nil; m = m.next {
		if slot < len(m.terms) {
			return m.terms[slot]
		}
		slot -= len(m.terms)
	}
	return nil
}

func (c *cell[T]) setTerm(slot int, t *term) {
	if slot == 0 {
		c.term0 = t
		return
	}
	slot--
	at := &c.more
	for {
		if *at == nil {
			if t == nil {
				return
			}
			*at = new(moreTerms)
		}
		if slot < len((*at).terms) {
			(*at).terms[slot] = t
			return
		}
		slot -= len((*at).terms)
		at = &(*at).next
	}
}

// term is one value of an index, or, for an object with several values, the set of
// them: parts then has each, in order.
type term struct {
	value string
	parts []*term
	// place is the position of the term's list in a rebuilder.
	place int
}

// newTerm makes the term of one value, which may be in a buffer that is reused, or a
// piece of the text of the first object that has it.
func newTerm(value string) *term { return &term{value: strings.Clone(value)} }

// each yields the single terms of a set; a nil t has none.
func (t *term) each(yield func(*term)) {
	switch {
	case t == nil:
	case t.parts == nil:
		yield(t)
	default:
		for _, part := range t.parts {
			yield(part)
		}
	}
}

// equals says whether t has exactly these values, which are in order.
func (t *term) equals(values []string) bool {
	if t == nil {
		return len(values) == 0
	}
	if t.parts == nil {
		return len(values) == 1 && values[0] == t.value
	}
	if len(values) != len(t.parts) {
		return false
	}
	for i, part := range t.parts {
		if part.value != values[i] {
			return false
		}
	}
	return true
}
