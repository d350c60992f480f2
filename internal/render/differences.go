package render

import (
	"maps"
	"slices"
)

// Edit is a field that differs between two states of an object.
type Edit struct {
	Path string `json:"path"`
	// Old is missing for an added field, New for a removed one.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	Op  string `json:"op"` // add, change, remove
}

// Differences lists what changed between two states, at the deepest level possible; a
// new subtree is one edit. It leaves out fields that change with every write. It
// returns at most most edits, with values of at most longest bytes; more reports that
// there are others.
//
// Elements of lists are matched by name, as the API does, so that a container inserted
// at the front is one difference. Values deeper than [MaxDepth] are compared as a
// whole.
func Differences(old, new map[string]any, most, longest int) (edits []Edit, more bool) {
	d := differ{most: most, longest: longest}
	d.maps(old, new, nil)
	return d.edits, d.more
}

type differ struct {
	most, longest int
	edits         []Edit
	more          bool
}

// noise holds the fields that every write changes.
func noise(path *Path) bool {
	return path.is("metadata", "resourceVersion") || path.is("metadata", "managedFields")
}

func (d *differ) add(path *Path, op string, old, new any) {
	if len(d.edits) >= d.most {
		d.more = true
		return
	}
	e := Edit{Path: path.String(), Op: op}
	if op != "add" {
		e.Old = Brief(old, d.longest)
	}
	if op != "remove" {
		e.New = Brief(new, d.longest)
	}
	d.edits = append(d.edits, e)
}

func (d *differ) maps(old, new map[string]any, path *Path) {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, new)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if d.more {
			return
		}
		was, had := old[name]
		is, has := new[name]
		d.values(was, is, had, has, path.Field(name))
	}
}

func (d *differ) values(old, new any, had, has bool, path *Path) {
	switch {
	case noise(path):
		return
	case !had:
		d.add(path, "add", nil, new)
		return
	case !has:
		d.add(path, "remove", old, nil)
		return
	}
	if path.Depth() < MaxDepth {
		switch was := old.(type) {
		case map[string]any:
			if is, ok := new.(map[string]any); ok {
				d.maps(was, is, path)
				return
			}
		case []any:
			if is, ok := new.([]any); ok {
				d.lists(was, is, path)
				return
			}
		}
	}
	if !Equal(old, new) {
		d.add(path, "change", old, new)
	}
}

// lists compares elements that have the same name. Where two lists name their
// elements differently, they are compared as a whole.
func (d *differ) lists(old, new []any, path *Path) {
	was, is := elementNames(old), elementNames(new)
	if was.field != is.field && len(old) > 0 && len(new) > 0 {
		if !Equal(old, new) {
			d.add(path, "change", old, new)
		}
		return
	}
	before := make(map[string]any, len(old))
	for i, element := range old {
		before[was.of(i)] = element
	}
	for i, element := range new {
		if d.more {
			return
		}
		name := is.of(i)
		past, had := before[name]
		delete(before, name)
		d.values(past, element, had, true, path.Element(name))
	}
	for i := range old {
		if d.more {
			return
		}
		if element, gone := before[was.of(i)]; gone {
			d.values(element, nil, true, false, path.Element(was.of(i)))
		}
	}
}
