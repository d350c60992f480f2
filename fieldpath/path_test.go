package fieldpath

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ text, want, steps string }{
		{"spec.nodeName", "spec.nodeName", "spec nodeName"},
		{".spec.nodeName", "spec.nodeName", "spec nodeName"},
		{"metadata.labels[app]", "metadata.labels.app", "metadata labels app"},
		{"metadata.labels['app']", "metadata.labels.app", "metadata labels app"},
		{"metadata.annotations[example.com/x]", "metadata.annotations[example.com/x]", "metadata annotations example.com/x"},
		{`a["x]'y"]`, `a['x]\'y']`, "a x]'y"},
		{`a['b\\c\'d'].e`, `a['b\\c\'d'].e`, `a b\c'd e`},
		{"spec.containers[*].image", "spec.containers[*].image", "spec containers * image"},
		{"a[0].b", "a[0].b", "a #0 b"},
		{"a['0'].b", "a.0.b", "a 0 b"},
		{"a[007]", "a.007", "a 007"},
		{"a['']", "a['']", "a "},
		{"['x y']", "['x y']", "x y"},
	} {
		p, err := Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		var steps []string
		for _, s := range p.steps {
			switch {
			case s.all:
				steps = append(steps, "*")
			case s.index >= 0:
				steps = append(steps, fmt.Sprint("#", s.index))
			default:
				steps = append(steps, s.name)
			}
		}
		if p.String() != test.want || strings.Join(steps, " ") != test.steps || p.Multi() != strings.Contains(test.text, "*") {
			t.Errorf("%s: %q with steps %q, want %q with %q", test.text, p, strings.Join(steps, " "), test.want, test.steps)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "a name is missing at position 1",
		".":                              "a name is missing at position 2",
		"a..b":                           "a name is missing at position 3",
		"..a":                            "a name is missing",
		"a.":                             "a name is missing at position 3",
		"a[b":                            "the bracket at position 2 is not closed",
		"a['b]":                          "the quote at position 3 is not closed",
		"a['b'":                          "a ] is missing",
		"a[0]b":                          `expected a dot or [ at "b"`,
		"a b":                            `the name "a b" needs brackets and quotes: ['a b']`,
		"a[x y]":                         `the key "x y" needs quotes: ['x y']`,
		"a[]":                            `the key "" needs quotes`,
		"spec.a=b":                       `needs brackets and quotes`,
		"a" + strings.Repeat("[*]", 200): "more than 100 steps deep",
	} {
		if p, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", text, p, err, want)
		}
	}
}

func TestMustParse(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "a..b") {
			t.Errorf("recovered %v", r)
		}
	}()
	MustParse("a..b")
}

// Any names at all make a path, and its text is read back as the same.
func TestTextOfAnySteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			switch rapid.IntRange(0, 3).Draw(t, "sort") {
			case 0:
				return step{index: -1, all: true}
			case 1:
				n := rapid.IntRange(0, 1000).Draw(t, "element")
				return step{name: fmt.Sprint(n), index: n}
			}
			return step{name: rapid.OneOf(rapid.String(), rapid.StringMatching(`[a0.\[\]'"*\\]{0,4}`)).Draw(t, "name"), index: -1}
		}), 1, 5).Draw(t, "steps")
		p := newPath(steps)
		again, err := Parse(p.String())
		if err != nil || !slices.Equal(again.steps, steps) {
			t.Fatalf("%+v became %q, which is read as %+v, %v", steps, p, again, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"spec.nodeName", "a[*].b[0]", `a['x\'y']`, "a[example.com/x]", ".a", "a[", "['"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || !slices.Equal(again.steps, p.steps) || again.String() != p.String() {
			t.Fatalf("%q is %q, which is read as %v, %v", text, p, again, err)
		}
		if _, err := p.Append(nil, map[string]any{"a": []any{"x", map[string]any{"b": "c"}}}); err != nil {
			t.Fatalf("%q: decoded JSON cannot be wrong: %v", text, err)
		}
	})
}
