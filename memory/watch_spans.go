package memory

import (
	"cmp"
	"math/rand/v2"

	"github.com/tarnproject/tarn/memory/query"
)

// span is a range of keys, or of values of an index.
type span = query.Span

// compareSpans orders spans by their beginning, then by their end.
func compareSpans(a, b span) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

// spanTree finds the spans that cover a key: prefixes, ranges, and everything,
// which is the span without bounds.
//
// It is an interval tree: ordered by the start of spans, and each node knows the
// farthest end below it, so that a search skips whatever ends before the key or
// begins after it. A search that finds k of n spans visits about (k+1) log n nodes.
//
// Why not a list of spans: every write would compare its key with all of them;
// 10,000 prefixes without a match made a write 600 times as slow. Why not a radix
// tree, which finds prefixes without a logarithm: ranges would need a second
// structure.
//
// It is a treap. Priorities are random, so that nobody can choose spans that make
// it deep.
type spanTree struct {
	root *spanNode
	// visits counts the nodes of searches, for tests.
	visits int
}

type spanNode struct {
	span
	topic
	priority    uint64
	left, right *spanNode
	// farthest is the latest end in this subtree, empty for no end.
	farthest string
}

// topicOf returns the topic of a span, and adds it if it is missing.
func (t *spanTree) topicOf(of span) *topic {
	for n := t.root; n != nil; {
		switch c := compareSpans(of, n.span); {
		case c == 0:
			return &n.topic
		case c < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	added := &spanNode{span: of, priority: rand.Uint64(), farthest: of.To}
	t.root = t.root.insert(added)
	return &added.topic
}

func (t *spanTree) remove(of span) { t.root = t.root.remove(of) }

// covering appends the topics of all spans that have a key to found.
func (t *spanTree) covering(found []*topic, key string) []*topic {
	return t.collect(t.root, found, key)
}

func (t *spanTree) collect(n *spanNode, found []*topic, key string) []*topic {
	for n != nil && !endsBy(n.farthest, key) {
		t.visits++
		if n.From > key {
			n = n.left
			continue
		}
		found = t.collect(n.left, found, key)
		if n.Has(key) {
			found = append(found, &n.topic)
		}
		n = n.right
	}
	return found
}

// endsBy says that a span that ends at end does not reach key.
func endsBy(end, key string) bool { return end != "" && end <= key }

// update recomputes a node's summary of its subtree.
func (n *spanNode) update() *spanNode {
	n.farthest = n.To
	for _, child := range []*spanNode{n.left, n.right} {
		if child != nil && n.farthest != "" && (child.farthest == "" || child.farthest > n.farthest) {
			n.farthest = child.farthest
		}
	}
	return n
}

func (n *spanNode) insert(added *spanNode) *spanNode {
	switch {
	case n == nil:
		return added
	case added.priority > n.priority:
		added.left, added.right = n.split(added.span)
		return added.update()
	case compareSpans(added.span, n.span) < 0:
		n.left = n.left.insert(added)
	default:
		n.right = n.right.insert(added)
	}
	return n.update()
}

// split divides a subtree into what is before a span and what is after it.
func (n *spanNode) split(at span) (before, after *spanNode) {
	if n == nil {
		return nil, nil
	}
	if compareSpans(n.span, at) < 0 {
		n.right, after = n.right.split(at)
		return n.update(), after
	}
	before, n.left = n.left.split(at)
	return before, n.update()
}

func (n *spanNode) remove(of span) *spanNode {
	if n == nil {
		return nil
	}
	switch c := compareSpans(of, n.span); {
	case c == 0:
		return merge(n.left, n.right)
	case c < 0:
		n.left = n.left.remove(of)
	default:
		n.right = n.right.remove(of)
	}
	return n.update()
}

// merge joins two subtrees; all of before precedes all of after.
func merge(before, after *spanNode) *spanNode {
	switch {
	case before == nil:
		return after
	case after == nil:
		return before
	case before.priority > after.priority:
		before.right = merge(before.right, after)
		return before.update()
	}
	after.left = merge(before, after.left)
	return after.update()
}
