package memory

import (
	"slices"
	"sort"
)

// tree is an ordered set of elements by their keys. Nodes that a reader may have
// are never changed: a writer changes a copy of the tree, and copies the nodes on
// the way to the change. It changes nodes that no reader can have in place, see
// editor.
//
// Slices of nodes are cut to length when they are copied, so that a node that is
// not full costs little more than its content.
type tree[E element] struct {
	root *node[E]
	n    int
	// paged says that leaves have pages, see page.
	paged bool
}

type element interface {
	sortKey() string
	// setPage sets the page of the element.
	setPage(*page)
}

// editor says which nodes a writer may change in place: those made after the state
// clean. It marks new nodes with state seq.
type editor struct{ seq, clean uint64 }

// maxNode is the largest number of elements, or children, of a node. Larger
// nodes make a write copy more, smaller ones make it go deeper.
const maxNode = 64

// node is a leaf with elements, or has children.
type node[E element] struct {
	made  uint64
	items []E
	inner *inner[E]
	page  *page
}

// inner is the children of a node. seps[i] is not above any key in kids[i], and
// above all in kids[i-1].
type inner[E element] struct {
	kids []*node[E]
	seps []string
}

// find returns where key is, or belongs, among the items.
func find[E element](items []E, key string) (int, bool) {
	i := sort.Search(len(items), func(i int) bool { return items[i].sortKey() >= key })
	return i, i < len(items) && items[i].sortKey() == key
}

// kid is the child that has a key, if any has.
func (in *inner[E]) kid(key string) int {
	return max(0, sort.Search(len(in.seps), func(i int) bool { return in.seps[i] > key })-1)
}

func (t tree[E]) get(key string) (e E, ok bool) {
	n := t.root
	if n == nil {
		return e, false
	}
	for n.inner != nil {
		n = n.inner.kids[n.inner.kid(key)]
	}
	if i, ok := find(n.items, key); ok {
		return n.items[i], true
	}
	return e, false
}

// leaves yields the leaves with elements from key on, each with the position of the
// first of them, until yield returns false.
func (t tree[E]) leaves(key string, yield func(leaf *node[E], first int) bool) {
	if t.root != nil {
		t.root.leaves(key, yield)
	}
}

func (n *node[E]) leaves(key string, yield func(*node[E], int) bool) bool {
	i := 0
	if n.inner == nil {
		if key != "" {
			i, _ = find(n.items, key)
		}
		return i == len(n.items) || yield(n, i)
	}
	if key != "" {
		i = n.inner.kid(key)
	}
	for _, kid := range n.inner.kids[i:] {
		if !kid.leaves(key, yield) {
			return false
		}
		key = ""
	}
	return true
}

// from yields the elements from key on, several at a time, until yield returns
// false.
func (t tree[E]) from(key string, yield func([]E) bool) {
	t.leaves(key, func(leaf *node[E], first int) bool { return yield(leaf.items[first:]) })
}

// each yields all elements, several at a time, and returns whether yield accepted
// all.
func (t tree[E]) each(yield func([]E) bool) bool {
	return t.root == nil || t.root.leaves("", func(leaf *node[E], _ int) bool { return yield(leaf.items) })
}

// first is the smallest element.
func (n *node[E]) first() E {
	for n.inner != nil {
		n = n.inner.kids[0]
	}
	return n.items[0]
}

// low is the smallest key, or a lower bound of it.
func (n *node[E]) low() string {
	if n.inner != nil {
		return n.inner.seps[0]
	}
	return n.items[0].sortKey()
}

// size counts the elements or children.
func (n *node[E]) size() int {
	if n.inner != nil {
		return len(n.inner.kids)
	}
	return len(n.items)
}

// build makes a tree of elements that are in order. The slice is not kept.
func build[E element](p editor, items []E, paged bool) tree[E] {
	t := tree[E]{n: len(items), paged: paged}
	if len(items) == 0 {
		return t
	}
	level := make([]*node[E], 0, len(items)/maxNode+1)
	for rest := range slices.Chunk(items, maxNode) {
		leaf := &node[E]{made: p.seq, items: slices.Clone(rest)}
		if paged {
			leaf.newPage(p)
		}
		level = append(level, leaf)
	}
	for len(level) > 1 {
		var above []*node[E]
		for kids := range slices.Chunk(level, maxNode) {
			in := &inner[E]{kids: slices.Clone(kids), seps: make([]string, len(kids))}
			for i, kid := range kids {
				in.seps[i] = kid.low()
			}
			above = append(above, &node[E]{made: p.seq, inner: in})
		}
		level = above
	}
	t.root = level[0]
	return t
}
