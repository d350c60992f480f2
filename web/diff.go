package web

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// edit is a field that differs between two states of an object.
type edit struct {
	Path string `json:"path"`
	// Old is missing for a field that came, New for one that went.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	Op  string `json:"op"` // add, change, remove
}

// maxEdits bounds what is told of one change; a reader is lost long before.
const maxEdits = 200

// maxBrief bounds each of the values.
const maxBrief = 240

// differences tells what changed, as deep as it can: an object that came as a
// whole is one edit. What changes with every write is left out.
func differences(old, new map[string]any) []edit {
	var d differ
	d.maps(old, new, "")
	return d.edits
}

type differ struct{ edits []edit }

// noise is what every write changes.
func noise(path string) bool {
	return path == "metadata.resourceVersion" || path == "metadata.managedFields"
}

func (d *differ) maps(old, new map[string]any, path string) {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, new)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := old[name]
		is, has := new[name]
		d.values(was, is, had, has, join(path, name))
	}
}

func (d *differ) values(old, new any, had, has bool, path string) {
	switch {
	case len(d.edits) >= maxEdits || noise(path):
		return
	case !had:
		d.edits = append(d.edits, edit{Path: path, New: brief(new), Op: "add"})
		return
	case !has:
		d.edits = append(d.edits, edit{Path: path, Old: brief(old), Op: "remove"})
		return
	}
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
	if !reflect.DeepEqual(old, new) {
		d.edits = append(d.edits, edit{Path: path, Old: brief(old), New: brief(new), Op: "change"})
	}
}

// lists compares elements that have the same name. Where two lists name their
// elements differently, they are compared as a whole.
func (d *differ) lists(old, new []any, path string) {
	was, is := elementNames(old), elementNames(new)
	if len(old) == 0 || len(new) == 0 || was.field != is.field {
		if !reflect.DeepEqual(old, new) {
			d.edits = append(d.edits, edit{Path: path, Old: brief(old), New: brief(new), Op: "change"})
		}
		return
	}
	before := make(map[string]any, len(old))
	for i, element := range old {
		before[was.of(i)] = element
	}
	for i, element := range new {
		name := is.of(i)
		past, had := before[name]
		delete(before, name)
		d.values(past, element, had, true, path+"["+name+"]")
	}
	for i := range old {
		if element, gone := before[was.of(i)]; gone {
			d.values(element, nil, true, false, path+"["+was.of(i)+"]")
		}
	}
}

// brief is a value in one line that is not too long.
func brief(value any) string {
	text := scalar(value)
	switch value := value.(type) {
	case string:
		text = value
		if value == "" || strings.ContainsAny(value, "\n\t") {
			text = quoted(value)
		}
	case map[string]any, []any:
		text = encodeJSON(value)
	}
	if len(text) <= maxBrief {
		return text
	}
	cut := maxBrief
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
