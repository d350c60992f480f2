package memory

import (
	"cmp"
	"slices"
)

// rebuild makes the ordered parts anew where much has changed: cheaper than many
// moves. Each object is asked by all indexes in turn, because what it costs is to
// get it from memory.
func (e *edit[T]) rebuild(p pen, shelves []*shelf[T]) *books[T] {
	b := &books[T]{cells: e.last.cells, indexes: make([]*shelf[T], len(e.last.indexes))}
	if e.come+e.gone > 0 {
		b.cells = e.cells(p)
	}
	all := make([]*rebuilder[T], len(shelves))
	for i, x := range shelves {
		all[i] = &rebuilder[T]{shelf: x, terms: map[string]*term{}}
	}
	for _, t := range e.touched {
		for _, r := range all {
			r.ask(e, t.cell)
		}
	}
	changed := slices.DeleteFunc(slices.Clone(all), func(r *rebuilder[T]) bool { return !r.changed })
	b.cells.from("", func(cells []*cell[T]) bool {
		for _, r := range changed {
			r.addAll(cells)
		}
		return true
	})
	for i, r := range all {
		y := r.shelf
		if r.changed {
			y = r.build(p)
		}
		if i < len(b.indexes) {
			b.indexes[i] = y
		} else {
			*r.shelf = *y // nobody reads what is being built
		}
	}
	return b
}

// rebuilder makes one index anew. Cells come in the order of their keys, and so
// the lists of each value are in order as they grow.
type rebuilder[T any] struct {
	shelf   *shelf[T]
	changed bool
	terms   map[string]*term
	lists   []termCells[T]
	entries int
}

// termCells is the cells of a term, which knows its place among them.
type termCells[T any] struct {
	term  *term
	cells []*cell[T]
}

// ask brings a cell that was written to the term of its new values.
func (r *rebuilder[T]) ask(e *edit[T], c *cell[T]) {
	values := e.valuesOf(r.shelf, c)
	if c.term(r.shelf.slot).equals(values) {
		return
	}
	r.changed = true
	e.leave(r.shelf, c)
	c.setTerm(r.shelf.slot, r.termOf(values))
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

func (r *rebuilder[T]) addAll(cells []*cell[T]) {
	for _, c := range cells {
		c.term(r.shelf.slot).each(func(t *term) { r.add(t, c) })
	}
}

func (r *rebuilder[T]) add(t *term, c *cell[T]) {
	if t.place >= len(r.lists) || r.lists[t.place].term != t {
		t.place = len(r.lists)
		r.lists = append(r.lists, termCells[T]{term: t})
	}
	list := &r.lists[t.place]
	list.cells = append(list.cells, c)
	r.entries++
}

func (r *rebuilder[T]) build(p pen) *shelf[T] {
	postings := make([]posting[T], len(r.lists))
	for i, list := range r.lists {
		postings[i] = postingOf(p, list.term, list.cells)
	}
	slices.SortFunc(postings, func(a, b posting[T]) int { return cmp.Compare(a.term.value, b.term.value) })
	return &shelf[T]{index: r.shelf.index, postings: build(p, postings, false), entries: r.entries}
}
