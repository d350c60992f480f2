package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	sigsyaml "sigs.k8s.io/yaml"
)

func TestYAMLText(t *testing.T) {
	object := map[string]any{
		"kind": "Pod",
		"metadata": map[string]any{
			"name":        "a",
			"annotations": map[string]any{"example.com/x y": "true", "empty": ""},
			"labels":      map[string]any{},
		},
		"spec": map[string]any{
			"containers": []any{
				map[string]any{"name": "main", "args": []any{"-v", "8080", []any{"x"}}, "limits": map[string]any{"cpu": "100m", "memory": "1Gi"}},
				map[string]any{},
			},
			"script": "one\n  two\n\nthree\n",
			"flag":   true, "none": nil, "count": int64(3), "share": 0.5, "list": []any{},
		},
	}
	want := strings.TrimPrefix(`
kind: Pod
metadata:
  annotations:
    empty: ""
    example.com/x y: "true"
  labels: {}
  name: a
spec:
  containers:
  - args:
    - "-v"
    - "8080"
    - - x
    limits:
      cpu: 100m
      memory: 1Gi
    name: main
  - {}
  count: 3
  flag: true
  list: []
  none: null
  script: |
    one
      two

    three
  share: 0.5
`, "\n")
	if diff := cmp.Diff(want, text(t, object)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	paths := map[string]string{}
	for _, l := range Lines(object, everything).Lines {
		paths[strings.TrimSpace(l.String())] = l.Path
	}
	for text, want := range map[string]string{
		"cpu: 100m":               "spec.containers[0].limits.cpu",
		`example.com/x y: "true"`: "metadata.annotations['example.com/x y']",
		"three":                   "spec.script",
	} {
		if paths[text] != want {
			t.Errorf("%q is said to be %q, want %q", text, paths[text], want)
		}
	}
}

// everything is more than any object of these tests has.
var everything = Limits{Lines: 1 << 30, Bytes: 1 << 30, Value: 1 << 30}

// text is an object as YAML, written and line by line.
func text(t interface{ Fatalf(string, ...any) }, object map[string]any) string {
	var written, lines strings.Builder
	if err := WriteYAML(&written, object); err != nil {
		t.Fatalf("%v", err)
	}
	shown := Lines(object, everything)
	for _, l := range shown.Lines {
		lines.WriteString(l.String() + "\n")
	}
	if lines.String() != written.String() || !shown.Whole() {
		t.Fatalf("line by line (whole: %v) it is\n%s\nand written\n%s", shown.Whole(), lines.String(), written.String())
	}
	return written.String()
}

// What is shown is YAML, and says what the object says.
func TestYAMLIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]any{"a": anyValue(3).Draw(t, "value")}
		text := text(t, object)
		encoded, err := sigsyaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		want, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if json.Unmarshal(encoded, &got) != nil || json.Unmarshal(want, &wanted) != nil {
			t.Fatalf("no JSON: %s", encoded)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Fatalf("object -, YAML +\n%s\n%s", diff, text)
		}
	})
}

// anyValue draws what JSON decodes to, with texts that YAML is particular about.
func anyValue(depth int) *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "yes", "No", "null", "~", "1e3", "0x1f", "1:20", "12", "-", "- a", "a: b", "a #b", "#", "a:", "*x", "&x", "!t", "|", "> x", "@", "%",
			strings.Repeat("k", 999), strings.Repeat("é ", 600), strings.Repeat("long", 300),
			"2026-01-01", "1_000", ".inf", "=", "<<", "10.0.0.1", "100m", "a\nb", "a\nb\n", "\na\n", " a\nb", "a\n b\n\n", "a\tb\nc", "é", "\u2028", "\ufeff", "\u0085", "a\r\nb",
		}),
		rapid.StringN(0, 12, -1),
		rapid.StringMatching(`[a-zA-Z0-9 ._/@%+:#()-]{0,10}`),
	)
	leaf := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-1000, 1000), func(n int64) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just(any(nil)),
	)
	if depth == 0 {
		return leaf
	}
	inner := anyValue(depth - 1)
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(inner, 0, 3), func(s []any) any { return s }),
		rapid.Map(rapid.MapOfN(text, inner, 0, 3), func(m map[string]any) any { return m }))
}
