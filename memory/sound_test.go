package memory

import (
	"fmt"
	"slices"
)

// sound returns what is wrong inside the store. Nobody may write meanwhile.
func (s *Store[T]) sound() string {
	// The collector may release an unused snapshot at any time.
	s.writing.Lock()
	defer s.writing.Unlock()
	pinned := s.pinned.Load()
	// What only a finished reader needed is released when the cell is next written
	// or there is enough of it to sweep.
	s.stale.sweep()
	st := s.current.Load()
	var cells []*cell[T]
	if wrong := st.cells.sound(func(c *cell[T]) { cells = append(cells, c) }); wrong != "" {
		return "cells: " + wrong
	}
	for _, c := range cells {
		head := c.head.Load()
		switch {
		case s.table.find(c.key) != c:
			return fmt.Sprintf("the table does not lead to the cell of %q", c.key)
		case head.deleted():
			return fmt.Sprintf("%q has gone, but stands in the tree", c.key)
		case head.seq() > st.seq:
			return fmt.Sprintf("%q has a version of state %d, which is not published", c.key, head.seq())
		case head.before.Load() != nil && pinned == 0:
			return fmt.Sprintf("%q keeps an old version that nobody can see", c.key)
		}
		older := 0
		for v := head.before.Load(); v != nil; v = v.before.Load() {
			older++
		}
		if older > len(s.stale.held) {
			return fmt.Sprintf("%q keeps %d old versions for %d states", c.key, older, len(s.stale.held))
		}
	}
	if live := s.table.live(); live != len(cells) {
		return fmt.Sprintf("the table has %d cells, the tree %d", live, len(cells))
	}
	for _, x := range st.indexes {
		if wrong := soundIndex(x, cells); wrong != "" {
			return x.name + ": " + wrong
		}
	}
	return ""
}

func (t *table[T]) live() int {
	seen := map[*shard[T]]bool{}
	n := 0
	d := t.dir.Load()
	for i := range d.shards {
		s := d.shards[i].Load()
		if seen[s] {
			continue
		}
		seen[s] = true
		for g := range s.groups {
			for slot := range slots {
				if s.groups[g].cells[slot].Load() != nil {
					n++
				}
			}
		}
	}
	return n
}

func soundIndex[T any](x *indexState[T], cells []*cell[T]) (wrong string) {
	found := map[string][]*cell[T]{}
	entries := 0
	wrong = x.postings.sound(func(p posting[T]) {
		n := 0
		p.each(func(cells []*cell[T]) bool {
			n += len(cells)
			found[p.term.value] = append(found[p.term.value], cells...)
			return true
		})
		if n != p.n || n == 0 {
			wrong = fmt.Sprintf("%q counts %d cells and has %d", p.term.value, p.n, n)
		}
		entries += n
	})
	if wrong != "" {
		return wrong
	}
	if entries != x.entries {
		return fmt.Sprintf("counts %d entries and has %d", x.entries, entries)
	}
	want := map[string][]*cell[T]{}
	for _, c := range cells {
		c.term(x.slot).each(func(t *term) { want[t.value] = append(want[t.value], c) })
	}
	if len(want) != len(found) {
		return fmt.Sprintf("has %d values, its cells remember %d", len(found), len(want))
	}
	for value := range want {
		if !slices.Equal(want[value], found[value]) {
			return fmt.Sprintf("%q has %d cells, %d remember it, or not in order", value, len(found[value]), len(want[value]))
		}
	}
	return ""
}

// sound checks the order and the shape of a tree and visits each element.
func (t tree[E]) sound(visit func(E)) string {
	n, last := 0, ""
	var check func(n *node[E], depth int) (int, string)
	check = func(at *node[E], depth int) (int, string) {
		if at.size() == 0 || at.size() > maxNode {
			return 0, fmt.Sprintf("a node has %d elements", at.size())
		}
		if at.inner == nil {
			for _, e := range at.items {
				if key := e.sortKey(); n > 0 && key <= last {
					return 0, fmt.Sprintf("%q comes after %q", key, last)
				}
				n, last = n+1, e.sortKey()
				visit(e)
			}
			return depth, ""
		}
		levels := 0
		for i, kid := range at.inner.kids {
			if n > 0 && at.inner.seps[i] <= last {
				return 0, fmt.Sprintf("the separator %q is not after %q", at.inner.seps[i], last)
			}
			before := n
			below, wrong := check(kid, depth+1)
			if wrong != "" {
				return 0, wrong
			}
			if levels != 0 && levels != below {
				return 0, "leaves at different depths"
			}
			levels = below
			first, _ := kid.first(), before
			if first.sortKey() < at.inner.seps[i] {
				return 0, fmt.Sprintf("%q is below its separator %q", first.sortKey(), at.inner.seps[i])
			}
		}
		return levels, ""
	}
	if t.root != nil {
		if _, wrong := check(t.root, 0); wrong != "" {
			return wrong
		}
	}
	if n != t.n {
		return fmt.Sprintf("counts %d elements and has %d", t.n, n)
	}
	return ""
}
