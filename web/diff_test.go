package web

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

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
	want := []edit{
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
	if diff := cmp.Diff(want, differences(old, changed)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

// There is an edit exactly if two states differ in more than the order of a list
// whose elements have names, and every path of what came is a line of the YAML.
func TestDifferencesAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "name"}), anyValue(3), 0, 4)
		old, changed := values.Draw(t, "old"), values.Draw(t, "new")
		if len(differences(old, old)) != 0 {
			t.Fatalf("differs from itself: %v", differences(old, old))
		}
		edits := differences(old, changed)
		if len(edits) == 0 && !reflect.DeepEqual(old, changed) && !strings.Contains(encodeJSON(old), `"name"`) {
			t.Fatalf("no difference between\n%s\n%s", encodeJSON(old), encodeJSON(changed))
		}
		paths := map[string]bool{}
		for _, l := range yamlLines(changed) {
			paths[l.Path] = true
		}
		for _, e := range edits {
			if e.Op == "add" && !paths[e.Path] && !strings.HasSuffix(e.New, "}") && !strings.HasSuffix(e.New, "]") {
				t.Fatalf("%s is in no line of\n%s", e.Path, yamlText(changed))
			}
		}
	})
}

func TestBriefIsBrief(t *testing.T) {
	got := brief(strings.Repeat("é", 1000))
	if !utf8.ValidString(got) || len(got) > maxBrief+len("…") {
		t.Errorf("%d bytes, valid %t", len(got), utf8.ValidString(got))
	}
}
