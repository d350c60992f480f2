package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/cmd/internal/term"
)

// difference is one field in which two states of an object differ. A missing
// value is nil.
type difference struct {
	path     string
	old, new any
}

// unremarkable fields change with every write and say nothing of it.
var unremarkable = []string{"metadata.resourceVersion", "metadata.managedFields"}

// differences compares two states field by field, in the order of their paths.
//
// Elements of lists are told apart by what they are called, as the API does, so
// that a container that is put in front of others is one difference and not one
// for each.
func differences(old, new map[string]any) []difference {
	var found []difference
	compare("", old, new, &found)
	return found
}

func compare(path string, old, new any, found *[]difference) {
	if slices.Contains(unremarkable, path) || reflect.DeepEqual(old, new) {
		return
	}
	switch o := old.(type) {
	case map[string]any:
		if n, ok := new.(map[string]any); ok {
			compareMaps(path, o, n, found)
			return
		}
	case []any:
		if n, ok := new.([]any); ok {
			compareLists(path, o, n, found)
			return
		}
	}
	*found = append(*found, difference{path, old, new})
}

func compareMaps(path string, old, new map[string]any, found *[]difference) {
	keys := maps.Clone(old)
	maps.Copy(keys, new)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		compare(join(path, key), old[key], new[key], found)
	}
}

// join adds a key to a path, in brackets if it could be misread.
func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func compareLists(path string, old, new []any, found *[]difference) {
	if called := calledBy(old, new); called != "" {
		compareNamed(path, called, old, new, found)
		return
	}
	for i := range max(len(old), len(new)) {
		var o, n any
		if i < len(old) {
			o = old[i]
		}
		if i < len(new) {
			n = new[i]
		}
		compare(fmt.Sprintf("%s[%d]", path, i), o, n, found)
	}
}

// calledBy finds the field by which the elements of both lists are told apart.
func calledBy(lists ...[]any) string {
	for _, field := range []string{"name", "type", "uid", "key", "ip", "containerPort", "port"} {
		if !slices.ContainsFunc(lists, func(list []any) bool { return !distinct(field, list) }) {
			return field
		}
	}
	return ""
}

func distinct(field string, list []any) bool {
	seen := map[any]bool{}
	for _, element := range list {
		object, ok := element.(map[string]any)
		if !ok {
			return false
		}
		switch name := object[field].(type) {
		case string, int64, float64:
			if seen[name] {
				return false
			}
			seen[name] = true
		default:
			return false
		}
	}
	return true
}

func compareNamed(path, called string, old, new []any, found *[]difference) {
	before, after := byName(called, old), byName(called, new)
	for _, element := range old {
		name := element.(map[string]any)[called]
		compare(fmt.Sprintf("%s[%v]", path, name), element, after[name], found)
	}
	for _, element := range new {
		name := element.(map[string]any)[called]
		if _, known := before[name]; !known {
			compare(fmt.Sprintf("%s[%v]", path, name), nil, element, found)
		}
	}
}

// byName has nil for what is not there, and not an empty object.
func byName(called string, list []any) map[any]any {
	named := make(map[any]any, len(list))
	for _, element := range list {
		named[element.(map[string]any)[called]] = element
	}
	return named
}

// line is how a difference is shown: path: old → new.
func (d difference) line() term.Line {
	return term.Line{
		{Text: "  " + term.Clean(d.path) + ": "},
		{Text: value(d.old), Style: term.Red}, {Text: " → "}, {Text: value(d.new), Style: term.Green},
	}
}

// longestValue is how much of a value is shown.
const longestValue = 160

func value(v any) string {
	if v == nil {
		return "(none)"
	}
	if text, ok := v.(string); ok && text != "" {
		return term.Cut(term.Clean(text), longestValue)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return term.Cut(term.Clean(string(data)), longestValue)
}
