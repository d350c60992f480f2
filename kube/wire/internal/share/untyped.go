package share

import (
	"slices"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// treeSites is how many fields of trees are distinguished, by the hash of their
// keys. Two fields with one slot share their statistics, which costs some lookups.
const treeSites = 512

func (w *worker) treeSite(where uint64) *site {
	if w.trees == nil {
		w.trees = new([2 * treeSites]site)
	}
	return &w.trees[where%treeSites]
}

// textSite is the site of bare strings, such as keys. They have sites of their own:
// in a tree a string is known by the interface that holds it, and must not be
// mistaken for its bytes.
func (w *worker) textSite(where uint64) *site {
	w.treeSite(0)
	return &w.trees[treeSites+where%treeSites]
}

// where names a field of a Go type that holds a tree.
func (p *plan) where(step int) uint64 { return uint64(p.id)<<16 | uint64(step) }

// below names the field of a tree under a key.
func below(where uint64, key string) uint64 { return mix(where, hashString(key), numberSalt) }

// own shares the parts of a map that belongs to its object: the object itself
// and its metadata.
func (w *worker) own(m, like map[string]any, where uint64, level int) (map[string]any, bool) {
	out, changed := make(map[string]any, len(m)), false
	for key, value := range m {
		where, now := below(where, key), false
		switch member, isMap := value.(map[string]any); {
		case level == 1 && !w.sharer.opts.SharedMetadata && slices.Contains(shape.PrivateMetadata, key):
			value, now = w.private(value, where, level+1)
		case level == 0 && key == "metadata" && isMap && member != nil:
			members, _ := like[key].(map[string]any)
			value, now = w.own(member, members, where, level+1)
		default:
			value, _, now = w.tree(value, like[key], where, unhashed, level+1)
		}
		changed = w.member(out, where, key, value) || now || changed
	}
	if !changed {
		return m, false
	}
	return out, true
}

// private copies the maps and lists of metadata that belongs to one object;
// only its text is shared. It does not read another state of the object,
// because somebody may write to that.
func (w *worker) private(v any, where uint64, depth int) (any, bool) {
	if depth >= maxDepth {
		return v, false
	}
	switch x := v.(type) {
	case string:
		return w.treeText(x, v, nil, where)
	case map[string]any:
		if x == nil {
			return v, false
		}
		out := make(map[string]any, len(x))
		for key, value := range x {
			where := below(where, key)
			value, _ = w.private(value, where, depth+1)
			w.member(out, where, key, value)
		}
		return out, true
	case []any:
		if x == nil {
			return v, false
		}
		out := make([]any, len(x))
		for i, value := range x {
			out[i], _ = w.private(value, mix(where, 0, listSalt), depth+1)
		}
		return out, true
	default:
		return v, false
	}
}

// member sets a member of a map that is being built, and says whether its key was
// replaced.
func (w *worker) member(out map[string]any, where uint64, key string, value any) bool {
	shared, replaced, _ := w.text(w.textSite(where), key, "")
	if replaced {
		key = shared
	}
	out[key] = value
	return replaced
}

// tree shares a value of a tree: see [worker.part].
func (w *worker) tree(v, like any, where uint64, cur, depth int) (out any, next int, changed bool) {
	switch x := v.(type) {
	case string:
		out, changed = w.treeText(x, v, like, where)
		return out, cur, changed
	case map[string]any:
		if x != nil {
			return w.treePart(mapPart, v, like, where, cur, depth)
		}
	case []any:
		if x != nil {
			return w.treePart(listPart, v, like, where, cur, depth)
		}
	}
	return v, cur, false
}

func (w *worker) treeText(text string, v, like any, where uint64) (any, bool) {
	if same, ok := like.(string); ok && same == text {
		return like, shape.Boxed(like) != shape.Boxed(v)
	}
	at := w.treeSite(where)
	if text == "" || at.skips() {
		return v, false
	}
	last, x := at.next(w.epoch), shape.Memory{Ptr: shape.Boxed(v), N: 1}
	if last.N == len(text) && *(*string)(last.Ptr) == text {
		at.hit()
		return textPart.value(*last), last.Ptr != x.Ptr
	}
	hash := hashString(text)
	y, ok := w.find(textPart, hash, x)
	if ok {
		at.hit()
	} else {
		at.miss()
		y = w.offer(textPart, hash, x, uintptr(len(text)))
	}
	*last = shape.Memory{Ptr: y.Ptr, N: len(text)}
	return textPart.value(y), y.Ptr != x.Ptr
}

func (w *worker) treePart(s *step, v, like any, where uint64, cur, depth int) (out any, next int, changed bool) {
	at, next := w.treeSite(where), unhashed
	if cur != unhashed {
		next = int(w.nodes[cur].next)
	}
	if w.cloned {
		cur = unhashed // the nodes lead to the map that was cloned
	}
	if w.left--; w.left < 0 || depth >= maxDepth {
		return v, next, false
	}
	if like != nil && w.equalTree(v, like, depth) {
		return like, next, shape.Boxed(like) != shape.Boxed(v)
	}
	if at.skips() {
		out, changed = w.treeBelow(v, like, where, cur, depth)
		return out, next, changed
	}
	mark, hashed := len(w.nodes), cur != unhashed
	if !hashed {
		cur = mark
		w.hashTree(v, depth)
	}
	out, changed = w.lookUpTree(s, at, v, like, where, cur, depth)
	if !hashed {
		w.forget(mark)
	}
	return out, next, changed
}

// lookUpTree shares a map or list that has been hashed.
func (w *worker) lookUpTree(s *step, at *site, v, like any, where uint64, cur, depth int) (any, bool) {
	n, x := w.nodes[cur], shape.Memory{Ptr: shape.Boxed(v), N: 1}
	if n.cut {
		return v, false
	}
	if n.opaque {
		return w.treeBelow(v, like, where, cur, depth)
	}
	y, ok := w.find(s, n.hash, x)
	if ok {
		at.hit()
	} else {
		at.miss()
		var out any
		if w.inPlace {
			out, _ = w.treeBelow(v, like, where, cur, depth)
		} else {
			out = w.ownTree(v, where, depth)
		}
		y = w.offer(s, n.hash, shape.Memory{Ptr: shape.Boxed(out), N: 1}, mapBytes)
	}
	return s.value(y), y.Ptr != x.Ptr
}

// treeBelow shares the members of a map, or of a list. cur is its own node.
func (w *worker) treeBelow(v, like any, where uint64, cur, depth int) (any, bool) {
	list, ok := v.([]any)
	if ok {
		return w.list(v, list, like, where, cur, depth)
	}
	m := v.(map[string]any)
	members, _ := like.(map[string]any)
	out, changed, now := make(map[string]any, len(m)), false, false
	if cur == unhashed {
		for key, value := range m {
			where := below(where, key)
			value, _, now = w.tree(value, members[key], where, unhashed, depth+1)
			changed = w.member(out, where, key, value) || now || changed
		}
	} else {
		n := w.nodes[cur]
		cur++
		for i := n.entry; i < n.entry+n.entries; i++ {
			e := w.entries[i]
			where := below(where, e.key)
			e.value, cur, now = w.tree(e.value, members[e.key], where, cur, depth+1)
			changed = w.member(out, where, e.key, e.value) || now || changed
		}
	}
	if !changed {
		return v, false
	}
	return out, true
}

func (w *worker) list(v any, list []any, like any, where uint64, cur, depth int) (any, bool) {
	if cur != unhashed {
		cur++
	}
	var out []any
	members, _ := like.([]any)
	where = mix(where, 0, listSalt)
	for i, value := range list {
		var member any
		if i < len(members) {
			member = members[i]
		}
		value, next, changed := w.tree(value, member, where, cur, depth+1)
		cur = next
		if changed && out == nil {
			out = append(make([]any, 0, len(list)), list...)
		}
		if changed {
			out[i] = value
		}
	}
	switch {
	case out != nil:
		return out, true
	case cap(list) != len(list):
		return append(make([]any, 0, len(list)), list...), true
	default:
		return v, false
	}
}
