package memory

import (
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// cell is the place of one object, from its coming to its going.
//
// Readers follow head without a lock. page, terms and more are the writer's: under
// which values the object stands in the index of each slot. They are remembered
// because nobody can be asked later: a function may change its mind, and an
// object may be changed behind our back. Three slots are inline because most
// stores have no more indexes, and a slice costs 48 bytes; a cell has 64.
type cell[T any] struct {
	key   tarn.Key
	head  atomic.Pointer[version[T]]
	page  *page
	terms [3]*term
	more  *[]*term
}

// version is an object as a state showed it, with the version before, as long as
// somebody may look for that. One that has none before it is published: until
// then it has at least the nothing that was there before a fresh cell.
type version[T any] struct {
	object T
	// stamp is twice the number of the state that brought it, plus one if what
	// it brought is the end of the object.
	stamp  uint64
	before atomic.Pointer[version[T]]
}

func (v *version[T]) seq() uint64 { return v.stamp >> 1 }
func (v *version[T]) gone() bool  { return v.stamp&1 == 1 }

// nothing is what a cell has before its first version.
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

// term is where the cell stands in the index of a slot, nil for nowhere.
func (c *cell[T]) term(slot int) *term {
	if slot < len(c.terms) {
		return c.terms[slot]
	}
	if slot -= len(c.terms); c.more != nil && slot < len(*c.more) {
		return (*c.more)[slot]
	}
	return nil
}

func (c *cell[T]) setTerm(slot int, t *term) {
	if slot < len(c.terms) {
		c.terms[slot] = t
		return
	}
	slot -= len(c.terms)
	if c.more == nil {
		if t == nil {
			return
		}
		c.more = new([]*term)
	}
	if missing := slot + 1 - len(*c.more); missing > 0 {
		*c.more = append(*c.more, make([]*term, missing)...)
	}
	(*c.more)[slot] = t
}

// term is one value of an index, or, for an object that has several, the set of
// them: parts then has each, in order.
type term struct {
	value string
	parts []*term
	// place is for a rebuilder to find the term's list by.
	place int
}

// each gives the single terms of a set; t may be nil, which is none.
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

// equals says whether t has just these values, which are in order.
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
