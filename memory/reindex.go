package memory

import (
	"cmp"
	"slices"
)

// A move takes a cell to other values of an index.
type move[T any] struct {
	shelf  int
	cell   *cell[T]
	values []string
}

// moves asks every index about each object that was written. Those that keep
// their values, nearly all, cost no more than that. shelves are the public
// indexes and then those being built.
func (e *edit[T]) moves(shelves []*shelf[T]) []move[T] {
	var moves []move[T]
	for i, x := range shelves {
		for _, t := range e.touched {
			values := e.valuesOf(x, t.cell)
			if !t.cell.term(x.slot).equals(values) {
				moves = append(moves, move[T]{i, t.cell, x.keepAll(values)})
			}
		}
	}
	return moves
}

// valuesOf gives the values of a cell that was written: none, if its object has
// gone or the index cannot take it.
func (e *edit[T]) valuesOf(x *shelf[T], c *cell[T]) []string {
	head := c.head.Load()
	if head.gone() {
		return nil
	}
	values, err := x.valuesOf(head.object)
	if err != nil {
		e.note(place{c.key, x.name}, err)
	}
	return values
}

// leave remembers where a cell stood, for those who watch.
func (e *edit[T]) leave(x *shelf[T], c *cell[T]) {
	if c.term(x.slot) == nil {
		return
	}
	if e.left == nil {
		e.left = map[*index[T]][]*term{}
	}
	c.term(x.slot).each(func(t *term) { e.left[x.index] = append(e.left[x.index], t) })
}

// shelve makes moves in copies of the shelves. What is being built nobody reads,
// so it is changed in place.
func (e *edit[T]) shelve(p pen, shelves []*shelf[T], moves []move[T]) []*shelf[T] {
	next := slices.Clone(shelves)
	public := len(e.last.indexes)
	for _, m := range moves {
		x := next[m.shelf]
		with := p
		if m.shelf >= public {
			with.clean = 0
		} else if x == shelves[m.shelf] {
			x = new(*x)
			next[m.shelf] = x
		}
		e.leave(x, m.cell)
		x.move(with, m.cell, m.values)
	}
	return next[:public:public]
}

// rebuilt makes an index anew from the terms of all cells, which is cheaper than
// moving many. Cells come in the order of their keys, and so the lists of each
// value are in order as they grow.
func (e *edit[T]) rebuilt(x *shelf[T], cells tree[*cell[T]], p pen) *shelf[T] {
	r := rebuilder[T]{shelf: x, terms: map[string]*term{}, lists: map[*term]*[]*cell[T]{}}
	changed := false
	for _, t := range e.touched {
		values := e.valuesOf(x, t.cell)
		if t.cell.term(x.slot).equals(values) {
			continue
		}
		changed = true
		e.leave(x, t.cell)
		t.cell.setTerm(x.slot, r.termOf(values))
	}
	if !changed {
		return x
	}
	cells.from("", func(cells []*cell[T]) bool {
		for _, c := range cells {
			c.term(x.slot).each(func(t *term) { r.add(t, c) })
		}
		return true
	})
	return r.build(p)
}

type rebuilder[T any] struct {
	shelf *shelf[T]
	terms map[string]*term
	lists map[*term]*[]*cell[T]
	// latest is the list that was added to last: objects that follow each other
	// by key often have the same value.
	latest     *[]*cell[T]
	latestTerm *term
	entries    int
}

func (r *rebuilder[T]) termOf(values []string) *term {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return r.single(values[0])
	}
	set := &term{parts: make([]*term, len(values))}
	for i, value := range values {
		set.parts[i] = r.single(value)
	}
	return set
}

func (r *rebuilder[T]) single(value string) *term {
	t, ok := r.terms[value]
	if ok {
		return t
	}
	if p, ok := r.shelf.postings.get(value); ok {
		t = p.term
	} else {
		t = &term{value: r.shelf.keep(value)}
	}
	r.terms[t.value] = t
	return t
}

func (r *rebuilder[T]) add(t *term, c *cell[T]) {
	if t != r.latestTerm {
		list, ok := r.lists[t]
		if !ok {
			list = new([]*cell[T])
			r.lists[t] = list
		}
		r.latest, r.latestTerm = list, t
	}
	*r.latest = append(*r.latest, c)
	r.entries++
}

func (r *rebuilder[T]) build(p pen) *shelf[T] {
	postings := make([]posting[T], 0, len(r.lists))
	for t, list := range r.lists {
		postings = append(postings, postingOf(p, t, *list))
	}
	slices.SortFunc(postings, func(a, b posting[T]) int { return cmp.Compare(a.term.value, b.term.value) })
	return &shelf[T]{index: r.shelf.index, postings: build(p, postings, false), entries: r.entries}
}
