package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, ``},
		{"a value", `{"spec":{"replicas":1}}`, `{"spec":{"replicas":2}}`, `spec.replicas: 1 → 2`},
		{"texts", `{"a":"x","b":"","c":"1"}`, `{"a":"y","b":"z"}`, `a: x → y
b: "" → z
c: 1 → (none)`},
		{"what comes and goes whole", `{"a":{"b":{"c":1}}}`, `{"a":{"d":[1,2]}}`, `a.b: {"c":1} → (none)
a.d: (none) → [1,2]`},
		{"another type", `{"a":{"b":1}}`, `{"a":"b"}`, `a: {"b":1} → b`},
		{"keys with dots", `{"metadata":{"annotations":{"x.io/a":"1"}}}`, `{"metadata":{"annotations":{"x.io/a":"2"}}}`, `metadata.annotations['x.io/a']: 1 → 2`},
		{"what every write changes", `{"metadata":{"resourceVersion":"1","managedFields":[1]}}`, `{"metadata":{"resourceVersion":"2"}}`, ``},
		{"named elements move", `{"c":[{"name":"a","v":1},{"name":"b","v":1}]}`, `{"c":[{"name":"b","v":2},{"name":"x"},{"name":"a","v":1}]}`, `c[b].v: 1 → 2
c[x]: (none) → {"name":"x"}`},
		{"named elements go", `{"c":[{"type":"Ready"},{"type":"Old"}]}`, `{"c":[{"type":"Ready"}]}`, `c[Old]: {"type":"Old"} → (none)`},
		{"plain elements", `{"args":["a","b"]}`, `{"args":["a","c","d"]}`, `args[1]: b → c
args[2]: (none) → d`},
		{"names that are not unique", `{"p":[{"name":"a","x":1},{"name":"a","x":2}]}`, `{"p":[{"name":"a","x":1},{"name":"a","x":3}]}`, `p[1].x: 2 → 3`},
		{"ports", `{"p":[{"containerPort":80}]}`, `{"p":[{"containerPort":80,"protocol":"TCP"}]}`, `p[80].protocol: (none) → TCP`},
		{"escape codes", `{"a":"x"}`, `{"a":"\u001b[2J"}`, "a: x → \uFFFD[2J"},
		{"long texts", `{"a":"x"}`, `{"a":"` + strings.Repeat("y", 500) + `"}`, "a: x → " + strings.Repeat("y", longestValue) + "…"},
	} {
		var lines []string
		for _, line := range differences(parse(t, test.old), parse(t, test.new)) {
			lines = append(lines, strings.TrimPrefix(line.Render(false), "  "))
		}
		if got := strings.Join(lines, "\n"); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
