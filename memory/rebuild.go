package memory

import (
	"cmp"
	"slices"
)

// rebuild builds the trees of a state from scratch where much has changed. This is
// cheaper than many moves. It puts one object after the other into all indexes,
// because fetching an object from memory is the main cost.
func (e *edit[T]) rebuild(p editor, indexes []*indexState[T]) *indexSet[T] {
	b := &indexSet[T]{cells: e.last.cells, indexes: make([]*indexState[T], len(e.last.indexes))}
	if e.added+e.removed > 0 {
		b.cells = e.cells(p)
	}
	all := make([]*rebuilder[T], len(indexes))
	for i, x := range indexes {
		all[i] = &rebuilder[T]{index: x, terms: map[string]*term{}}
	}
	for _, t := range e.touched {
		for _, r := range all {
			r.reindex(e, t.cell)
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
		y := r.index
		if r.changed {
			y = r.build(p)
		}
		if i < len(b.indexes) {
			b.indexes[i] = y
		} else {
			*r.index = *y // nobody reads an index that is being built
		}
	}
	return b
}

// rebuilder builds one index from scratch. Cells come in the order of their keys,
// so the list of each value is in order as it grows.
type rebuilder[T any] struct {
	index   *indexState[T]
	changed bool
	terms   map[string]*term
	lists   []termCells[T]
	entries int
}

// termCells are the cells of a term; the term has its position among them.
type termCells[T any] struct {
	term  *term
	cells []*cell[T]
}

// reindex gives a written cell the term of its new values.
func (r *rebuilder[T]) reindex(e *edit[T], c *cell[T]) {
	values := e.valuesOf(r.index, c)
	if c.term(r.index.slot).equals(values) {
		return
	}
	r.changed = true
	e.leave(r.index, c)
	c.setTerm(r.index.slot, r.termOf(values))
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
	if p, ok := r.index.postings.get(value); ok {
		t = p.term
	} else {
		t = newTerm(value)
	}
	r.terms[t.value] = t
	return t
}

func (r *rebuilder[T]) addAll(cells []*cell[T]) {
	for _, c := range cells {
		c.term(r.index.slot).each(func(t *term) { r.add(t, c) })
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

func (r *rebuilder[T]) build(p editor) *indexState[T] {
	postings := make([]posting[T], len(r.lists))
	for i, list := range r.lists {
		postings[i] = postingOf(p, list.term, list.cells)
	}
	slices.SortFunc(postings, func(a, b posting[T]) int { return cmp.Compare(a.term.value, b.term.value) })
	return &indexState[T]{index: r.index.index, postings: build(p, postings, false), entries: r.entries}
}
