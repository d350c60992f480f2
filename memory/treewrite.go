package memory

import "slices"

// set adds an element, or replaces the one with its key.
func (t *tree[E]) set(p editor, e E) {
	if t.root == nil {
		t.root, t.n = &node[E]{made: p.seq, items: []E{e}}, 1
		if t.paged {
			t.root.newPage(p)
		}
		return
	}
	root, right, added := t.root.set(p, e)
	if right != nil {
		root = &node[E]{made: p.seq, inner: &inner[E]{kids: []*node[E]{root, right}, seps: []string{root.low(), right.low()}}}
	}
	t.root = root
	if added {
		t.n++
	}
}

// own returns the node, or a copy of it, that the editor may change, with room for
// one more.
func (n *node[E]) own(p editor) *node[E] {
	if n.made > p.clean {
		return n
	}
	c := &node[E]{made: p.seq, page: n.page}
	if n.inner == nil {
		c.items = append(make([]E, 0, len(n.items)+1), n.items...)
	} else {
		c.inner = &inner[E]{
			kids: append(make([]*node[E], 0, len(n.inner.kids)+1), n.inner.kids...),
			seps: append(make([]string, 0, len(n.inner.seps)+1), n.inner.seps...),
		}
	}
	return c
}

func (n *node[E]) set(p editor, e E) (left, right *node[E], added bool) {
	key := e.sortKey()
	if n.inner == nil {
		i, found := find(n.items, key)
		n = n.own(p)
		if found {
			n.items[i] = e
			return n, nil, false
		}
		n.items = slices.Insert(n.items, i, e)
		if n.page != nil {
			n.page.touch(p.seq)
			e.setPage(n.page)
		}
		return n, n.split(p, i), true
	}
	i := n.inner.kid(key)
	kid, sibling, added := n.inner.kids[i].set(p, e)
	if kid == n.inner.kids[i] && sibling == nil && key >= n.inner.seps[i] {
		return n, nil, added
	}
	n = n.own(p)
	n.inner.kids[i] = kid
	if key < n.inner.seps[i] {
		n.inner.seps[i] = key
	}
	if sibling == nil {
		return n, nil, added
	}
	n.inner.kids = slices.Insert(n.inner.kids, i+1, sibling)
	n.inner.seps = slices.Insert(n.inner.seps, i+1, sibling.low())
	return n, n.split(p, i+1), added
}

// split cuts off the second half of a node that is too large. Where elements come
// in order, at is the end, and the first half stays full.
func (n *node[E]) split(p editor, at int) *node[E] {
	size := n.size()
	if size <= maxNode {
		return nil
	}
	half := size / 2
	if at == size-1 {
		half = size - 1
	}
	right := &node[E]{made: p.seq}
	if n.inner == nil {
		right.items = slices.Clone(n.items[half:])
		n.items = slices.Clone(n.items[:half])
		if n.page != nil {
			right.newPage(p)
		}
		return right
	}
	right.inner = &inner[E]{kids: slices.Clone(n.inner.kids[half:]), seps: slices.Clone(n.inner.seps[half:])}
	n.inner.kids, n.inner.seps = slices.Clone(n.inner.kids[:half]), slices.Clone(n.inner.seps[:half])
	return right
}

// delete removes the element with this key, if there is one.
func (t *tree[E]) delete(p editor, key string) {
	if t.root == nil {
		return
	}
	root, gone := t.root.delete(p, key)
	if !gone {
		return
	}
	t.n--
	for root.inner != nil && len(root.inner.kids) == 1 {
		root = root.inner.kids[0]
	}
	if root.size() == 0 {
		root = nil
	}
	t.root = root
}

func (n *node[E]) delete(p editor, key string) (*node[E], bool) {
	if n.inner == nil {
		i, found := find(n.items, key)
		if !found {
			return n, false
		}
		n = n.own(p)
		n.items = slices.Delete(n.items, i, i+1)
		if n.page != nil {
			n.page.touch(p.seq)
		}
		return n, true
	}
	i := n.inner.kid(key)
	kid, gone := n.inner.kids[i].delete(p, key)
	if !gone {
		return n, false
	}
	n = n.own(p)
	n.inner.kids[i] = kid
	if kid.size() == 0 {
		n.inner.remove(i)
	} else if kid.size() < maxNode/4 {
		n.inner.merge(p, i)
	}
	return n, true
}

func (in *inner[E]) remove(i int) {
	in.kids = slices.Delete(in.kids, i, i+1)
	in.seps = slices.Delete(in.seps, i, i+1)
}

// merge joins a small child to a neighbour, if the two fit well into one.
func (in *inner[E]) merge(p editor, i int) {
	if i == len(in.kids)-1 {
		i--
	}
	if i < 0 || in.kids[i].size()+in.kids[i+1].size() > maxNode*3/4 {
		return
	}
	left, right := in.kids[i].own(p), in.kids[i+1]
	if left.inner == nil {
		left.items = append(left.items, right.items...)
		if left.page != nil {
			left.newPage(p)
		}
	} else {
		left.inner.kids = append(left.inner.kids, right.inner.kids...)
		left.inner.seps = append(left.inner.seps, right.inner.seps...)
	}
	in.kids[i] = left
	in.remove(i + 1)
}
