package memory

// posting is a value of an index with its cells. A value with a single object needs
// no node.
type posting[T any] struct {
	term *term
	one  *cell[T]
	many *node[*cell[T]]
	n    int
}

func (p posting[T]) sortKey() string { return p.term.value }
func (p posting[T]) setPage(*page)   {}

func (p posting[T]) cells() tree[*cell[T]] { return tree[*cell[T]]{root: p.many, n: p.n} }

// each yields the cells in the order of their keys, several at a time.
func (p posting[T]) each(yield func([]*cell[T]) bool) bool {
	if p.many == nil {
		one := [1]*cell[T]{p.one}
		return yield(one[:])
	}
	return p.cells().each(yield)
}

// with is the posting with one more cell.
func (p posting[T]) with(w editor, c *cell[T]) posting[T] {
	if p.n == 0 {
		p.one, p.n = c, 1
		return p
	}
	cells := p.cells()
	if p.many == nil {
		cells.n = 0
		cells.set(w, p.one)
		p.one = nil
	}
	cells.set(w, c)
	p.many, p.n = cells.root, cells.n
	return p
}

// without is the posting with one cell less, empty if it was the last.
func (p posting[T]) without(w editor, c *cell[T]) posting[T] {
	if p.many == nil {
		return posting[T]{term: p.term}
	}
	cells := p.cells()
	cells.delete(w, string(c.key))
	p.many, p.n = cells.root, cells.n
	if p.n == 1 {
		p.one, p.many = p.many.first(), nil
	}
	return p
}

// postingOf makes a posting of cells that are in order.
func postingOf[T any](p editor, t *term, cells []*cell[T]) posting[T] {
	if len(cells) == 1 {
		return posting[T]{term: t, one: cells[0], n: 1}
	}
	return posting[T]{term: t, many: build(p, cells, false).root, n: len(cells)}
}

// add puts a cell under a value, and returns the value's term.
func (x *indexState[T]) add(w editor, value string, c *cell[T]) *term {
	p, ok := x.postings.get(value)
	if !ok {
		p.term = newTerm(value)
	}
	x.postings.set(w, p.with(w, c))
	x.entries++
	return p.term
}

// remove removes a cell from a term.
func (x *indexState[T]) remove(w editor, t *term, c *cell[T]) {
	p, ok := x.postings.get(t.value)
	if !ok {
		return
	}
	x.entries--
	if p = p.without(w, c); p.n == 0 {
		x.postings.delete(w, t.value)
		return
	}
	x.postings.set(w, p)
}

// move moves a cell from its present terms to these values, which are in order and
// without duplicates.
func (x *indexState[T]) move(w editor, c *cell[T], values []string) {
	old := c.term(x.slot)
	old.each(func(t *term) { x.remove(w, t, c) })
	switch len(values) {
	case 0:
		c.setTerm(x.slot, nil)
	case 1:
		c.setTerm(x.slot, x.add(w, values[0], c))
	default:
		set := &term{parts: make([]*term, len(values))}
		for i, value := range values {
			set.parts[i] = x.add(w, value, c)
		}
		c.setTerm(x.slot, set)
	}
}
