package memory

import "slices"

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
