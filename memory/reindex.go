package memory

import "slices"

// A move takes a cell to other values of an index.
type move[T any] struct {
	index  int
	cell   *cell[T]
	values []string
}

// moves computes the index values of each written object. Nearly all keep their
// values, and cost no more than that. indexes are the public ones and then those
// being built.
func (e *edit[T]) moves(indexes []*indexState[T]) []move[T] {
	var moves []move[T]
	for i, x := range indexes {
		for _, t := range e.touched {
			values := e.valuesOf(x, t.cell)
			if !t.cell.term(x.slot).equals(values) {
				moves = append(moves, move[T]{i, t.cell, x.keepAll(values)})
			}
		}
	}
	return moves
}

// valuesOf returns the values of a written cell: none, if its object was deleted or
// the index cannot accept it.
func (e *edit[T]) valuesOf(x *indexState[T], c *cell[T]) []string {
	head := c.head.Load()
	if head.deleted() {
		return nil
	}
	values, err := x.valuesOf(head.object)
	if err != nil {
		e.fail(indexedKey{c.key, x.name}, err)
	}
	return values
}

// leave remembers the terms that a cell leaves, for watchers.
func (e *edit[T]) leave(x *indexState[T], c *cell[T]) {
	if c.term(x.slot) == nil {
		return
	}
	if e.left == nil {
		e.left = map[*index[T]][]*term{}
	}
	c.term(x.slot).each(func(t *term) { e.left[x.index] = append(e.left[x.index], t) })
}

// applyMoves makes moves in copies of the indexes. Nobody reads an index that is
// being built, so it is changed in place.
func (e *edit[T]) applyMoves(p editor, indexes []*indexState[T], moves []move[T]) []*indexState[T] {
	next := slices.Clone(indexes)
	public := len(e.last.indexes)
	for _, m := range moves {
		x := next[m.index]
		with := p
		if m.index >= public {
			with.clean = 0
		} else if x == indexes[m.index] {
			x = new(*x)
			next[m.index] = x
		}
		e.leave(x, m.cell)
		x.move(with, m.cell, m.values)
	}
	return next[:public:public]
}
