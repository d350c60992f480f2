package render

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDifferences(t *testing.T) {
	old := map[string]any{
		"metadata": map[string]any{"resourceVersion": "1", "labels": map[string]any{"a": "1", "b/c": "2"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "x", "image": "i:1"}, map[string]any{"name": "y"}}, "args": []any{"a", "b"}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}},
	}
	changed := map[string]any{
		"metadata": map[string]any{"resourceVersion": "2", "labels": map[string]any{"a": "1", "d": "3"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "z"}, map[string]any{"name": "x", "image": "i:2"}}, "args": []any{"a", "c", "d"}},
		"status": map[string]any{"phase": "Running", "conditions": []any{
			map[string]any{"type": "Initialized", "status": "True"}, map[string]any{"type": "Ready", "status": "True"},
		}},
	}
	want := []Edit{
		{Path: "metadata.labels['b/c']", Old: "2", Op: "remove"},
		{Path: "metadata.labels.d", New: "3", Op: "add"},
		{Path: "spec.args[1]", Old: "b", New: "c", Op: "change"},
		{Path: "spec.args[2]", New: "d", Op: "add"},
		{Path: "spec.containers[z]", New: `{"name":"z"}`, Op: "add"},
		{Path: "spec.containers[x].image", Old: "i:1", New: "i:2", Op: "change"},
		{Path: "spec.containers[y]", Old: `{"name":"y"}`, Op: "remove"},
		{Path: "status.conditions[Initialized]", New: `{"status":"True","type":"Initialized"}`, Op: "add"},
		{Path: "status.conditions[Ready].status", Old: "False", New: "True", Op: "change"},
		{Path: "status.phase", New: "Running", Op: "add"},
	}
	if diff := cmp.Diff(want, all(old, changed)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

// There is an edit exactly if two states differ in more than the order of a list
// whose elements have names, and every path of what came is a line of the YAML.
func TestDifferencesAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "name"}), anyValue(3), 0, 4)
		old, changed := values.Draw(t, "old"), values.Draw(t, "new")
		if len(all(old, old)) != 0 {
			t.Fatalf("differs from itself: %v", all(old, old))
		}
		edits := all(old, changed)
		if len(edits) == 0 && !reflect.DeepEqual(old, changed) && !strings.Contains(compact(old), `"name"`) {
			t.Fatalf("no difference between\n%s\n%s", compact(old), compact(changed))
		}
		paths := map[string]bool{}
		for _, l := range Lines(changed, everything).Lines {
			paths[l.Path] = true
		}
		for _, e := range edits {
			if e.Op == "add" && !paths[e.Path] && !strings.HasSuffix(e.New, "}") && !strings.HasSuffix(e.New, "]") {
				t.Fatalf("%s is in no line of\n%s", e.Path, text(t, changed))
			}
		}
	})
}

// There are edits if and only if the states differ, and the way back has the same
// the other way round.
func TestDifferencesThereAndBack(t *testing.T) {
	values := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "name", "type", "port"}), anyValue(3), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		old, new := values.Draw(t, "old"), values.Draw(t, "new")
		there, back := all(old, new), all(new, old)
		if (len(there) == 0) != reflect.DeepEqual(unordered(old), unordered(new)) {
			t.Fatalf("%s and %s: %+v", compact(old), compact(new), there)
		}
		returned := map[string]Edit{}
		for _, e := range back {
			returned[e.Path] = e
		}
		if len(there) != len(back) {
			t.Fatalf("there %+v, back %+v", there, back)
		}
		reverse := map[string]string{"add": "remove", "remove": "add", "change": "change"}
		for _, e := range there {
			if b := returned[e.Path]; e.Old != b.New || e.New != b.Old || e.Op != reverse[b.Op] {
				t.Fatalf("there %+v, back %+v", e, b)
			}
		}
	})
}

// unordered is a value for somebody to whom elements that have names have no order,
// and an empty list none that they could have.
func unordered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, value := range v {
			kept[key] = unordered(value)
		}
		return kept
	case []any:
		called := elementNames(v)
		elements := map[string]any{}
		for i, element := range v {
			elements[called.of(i)] = unordered(element)
		}
		if called.field != "" {
			return [2]any{called.field, elements}
		}
		return [2]any{"", elements}
	}
	return v
}

func all(old, new map[string]any) []Edit {
	edits, more := Differences(old, new, 1<<30, 1<<30)
	if more {
		panic("there is more than everything")
	}
	return edits
}

func compact(value any) string { return Brief(value, 1<<30) }

func TestBrief(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{"plain", "plain"}, {"", `""`}, {"two\nlines", `"two\nlines"`}, {nil, "null"}, {int64(3), "3"}, {0.5, "0.5"}, {true, "true"},
		{map[string]any{"b": []any{"x", nil}, "a": map[string]any{}}, `{"a":{},"b":["x",null]}`},
		{strings.Repeat("é", 30), strings.Repeat("é", 20) + "…"},
		{[]any{strings.Repeat("x", 100)}, `["` + strings.Repeat("x", 38) + "…"},
	} {
		if got := Brief(test.value, 40); got != test.want {
			t.Errorf("%v is %s, want %s", test.value, got, test.want)
		}
	}
}
