package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
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
		{"keys with dots", `{"metadata":{"annotations":{"x.io/a":"1"}}}`, `{"metadata":{"annotations":{"x.io/a":"2"}}}`, `metadata.annotations[x.io/a]: 1 → 2`},
		{"what every write changes", `{"metadata":{"resourceVersion":"1","managedFields":[1]}}`, `{"metadata":{"resourceVersion":"2"}}`, ``},
		{"named elements move", `{"c":[{"name":"a","v":1},{"name":"b","v":1}]}`, `{"c":[{"name":"b","v":2},{"name":"x"},{"name":"a","v":1}]}`, `c[b].v: 1 → 2
c[x]: (none) → {"name":"x"}`},
		{"named elements go", `{"c":[{"type":"Ready"},{"type":"Old"}]}`, `{"c":[{"type":"Ready"}]}`, `c[Old]: {"type":"Old"} → (none)`},
		{"plain elements", `{"args":["a","b"]}`, `{"args":["a","c","d"]}`, `args[1]: b → c
args[2]: (none) → d`},
		{"names that are not unique", `{"p":[{"name":"a","x":1},{"name":"a","x":2}]}`, `{"p":[{"name":"a","x":1},{"name":"a","x":3}]}`, `p[1].x: 2 → 3`},
		{"ports", `{"p":[{"containerPort":80}]}`, `{"p":[{"containerPort":80,"protocol":"TCP"}]}`, `p[80].protocol: (none) → TCP`},
		{"escape codes", `{"a":"x"}`, `{"a":"\u001b[2J"}`, "a: x → \uFFFD[2J"},
		{"long texts", `{"a":"x"}`, `{"a":"` + strings.Repeat("y", 500) + `"}`, "a: x → " + strings.Repeat("y", longestValue-1) + "…"},
	} {
		var lines []string
		for _, d := range differences(parse(t, test.old), parse(t, test.new)) {
			lines = append(lines, strings.TrimPrefix(d.line().Render(false), "  "))
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

// There are differences if and only if the objects are different, and the way
// back is the same the other way round.
func TestDifferencesAreThoseThereAre(t *testing.T) {
	values := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(3) })
	object := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "name", "type"}), values)
	rapid.Check(t, func(t *rapid.T) {
		old, new := object.Draw(t, "old"), object.Draw(t, "new")
		there, back := differences(old, new), differences(new, old)
		if (len(there) == 0) != same(old, new) {
			t.Fatalf("%v and %v: differences %v", old, new, there)
		}
		returned := map[string]difference{}
		for _, d := range back {
			returned[d.path] = d
		}
		if len(there) != len(back) {
			t.Fatalf("there %v, back %v", there, back)
		}
		for _, d := range there {
			if b, ok := returned[d.path]; !ok || !reflect.DeepEqual(d.old, b.new) || !reflect.DeepEqual(d.new, b.old) {
				t.Fatalf("there %v, back %v", d, b)
			}
		}
	})
}

// same says whether two values are equal to somebody who takes null for nothing,
// and for whom elements that have names have no order.
func same(a, b any) bool { return reflect.DeepEqual(normal(a), normal(b)) }

func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, value := range v {
			if n := normal(value); n != nil {
				kept[key] = n
			}
		}
		return kept
	case []any:
		for _, field := range []string{"name", "type"} {
			if !distinct(field, v) {
				continue
			}
			named := map[any]any{}
			for _, element := range v {
				named[element.(map[string]any)[field]] = normal(element)
			}
			return named
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = normal(v[i])
		}
		return list
	}
	return v
}

func anyValue(depth int) *rapid.Generator[any] {
	plain := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Just[any]("x"), rapid.Just[any]("y"), rapid.Just[any](int64(1)), rapid.Just[any](true),
	}
	if depth > 0 {
		inner := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) })
		plain = append(plain,
			rapid.Custom(func(t *rapid.T) any {
				return rapid.MapOfN(rapid.SampledFrom([]string{"a", "name", "type"}), inner, 0, 3).Draw(t, "object")
			}),
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(inner, 0, 3).Draw(t, "list") }))
	}
	return rapid.OneOf(plain...)
}
