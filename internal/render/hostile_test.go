package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

// nested is a value below depth levels.
func nested(depth int, value any) any {
	for range depth {
		value = map[string]any{"a": value}
	}
	return value
}

// wide has as many keys.
func wide(keys int, value any) map[string]any {
	m := make(map[string]any, keys)
	for i := range keys {
		m[fmt.Sprintf("k%05d", i)] = value
	}
	return m
}

// hostile objects are small, and large if they are written as others are.
func hostile() map[string]map[string]any {
	objects := map[string]map[string]any{
		"deep and wide":            {"spec": nested(2000, wide(2000, "x"))},
		"wide at every level":      {"spec": wide(3, nested(2000, "x"))},
		"lists in lists":           {"spec": inLists(2000, wide(2000, "x"))},
		"named elements":           {"spec": namedElements(100, strings.Repeat("n", 1000))},
		"a long key above many":    {strings.Repeat("key", 20_000): wide(200, wide(4, "x"))},
		"long keys":                {"spec": map[string]any{strings.Repeat("a", 40_000): "x", strings.Repeat("b", 40_000): wide(2, nil)}},
		"a long text":              {"spec": strings.Repeat("text", 6_000)},
		"a text of many lines":     {"spec": strings.Repeat("x\n", 6_000)},
		"a list of many":           {"spec": manyOf(20_000, int64(1))},
		"escapes":                  {"spec": strings.Repeat("\x01\u2028\U000e0001", 6_000)},
		"many empty":               {"spec": manyOf(10_000, map[string]any{})},
		"many lists of one number": {"spec": nested(90, manyOf(6_000, []any{int64(1)}))},
	}
	return objects
}

func inLists(depth int, value any) any {
	for range depth {
		value = []any{value}
	}
	return value
}

func manyOf(n int, value any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = value
	}
	return list
}

func namedElements(n int, name string) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"name": fmt.Sprint(name, i), "value": wide(4, "x")}
	}
	return list
}

// page is what the page shows of an object.
var page = Limits{Lines: 4000, Bytes: 1 << 20, Value: 16 << 10}

// Nothing that is looked at grows with the object, and nothing that is taken away
// grows faster than the object, in memory or in bytes.
func TestHostileObjects(t *testing.T) {
	for name, object := range hostile() {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			// Sorting the keys of what is looked at takes 16 bytes for each.
			most := int64(20*len(encoded)) + 24<<20
			within(t, "lines", most, func() { checkLines(t, object) })
			checkCount(t, object)
			changed := map[string]any{"spec": "other", "more": object}
			within(t, "differences", most, func() {
				checkDifferences(t, object, changed)
				checkDifferences(t, map[string]any{"x": object}, map[string]any{"x": changed})
			})
			within(t, "brief", most, func() {
				if got := Brief(object, 240); len(got) > 240+len("…") {
					t.Errorf("brief has %d bytes", len(got))
				}
			})
			for form, write := range map[string]func(io.Writer) error{
				"YAML": func(w io.Writer) error { return WriteYAML(w, object) },
				"JSON": func(w io.Writer) error { return WriteJSON(w, object) },
			} {
				var n counter
				within(t, form, (indentPerByte+1)*most, func() {
					if err := write(&n); err != nil {
						t.Error(err)
					}
				})
				if limit := counter((indentPerByte+6)*len(encoded) + 2*freeIndent); n > limit || n < counter(len(encoded)/4) {
					t.Errorf("%s has %d bytes, and compact JSON %d: want at most %d", form, n, len(encoded), limit)
				}
			}
		})
	}
}

// within checks how much a function allocates in all.
func within(t *testing.T, what string, most int64, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if took := int64(after.TotalAlloc - before.TotalAlloc); took > most {
		t.Errorf("%s took %d MiB, want at most %d", what, took>>20, most>>20)
	}
}

type counter int

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

func checkLines(t *testing.T, object map[string]any) {
	t.Helper()
	shown := Lines(object, page)
	size := 0
	for _, l := range shown.Lines {
		size += len(l.Path) + len(l.Lead) + len(l.Key) + len(l.Value)
		if len(l.Path) > MaxPath+len("…") || len(l.Value) > page.Value+len("…") || strings.Contains(l.String(), "\n") {
			t.Errorf("a line has a path of %d bytes and a value of %d", len(l.Path), len(l.Value))
		}
	}
	if len(shown.Lines) > page.Lines || size > page.Bytes+page.Value {
		t.Errorf("%d lines, %d bytes", len(shown.Lines), size)
	}
}

// checkCount looks whether what is left out is counted.
func checkCount(t *testing.T, object map[string]any) {
	t.Helper()
	shown, whole := Lines(object, page), Lines(object, everything)
	got, want := len(shown.Lines)+shown.More, len(whole.Lines)
	if got < want || got > want+1 || whole.More > 0 || shown.Whole() && got != want { // a line may stand for the first that is missing
		t.Errorf("%d lines are shown and %d left out: there are %d", len(shown.Lines), shown.More, want)
	}
}

func checkDifferences(t *testing.T, old, new map[string]any) {
	t.Helper()
	edits, _ := Differences(old, new, 200, 240)
	if len(edits) > 200 || len(edits) == 0 && !Equal(old, new) {
		t.Errorf("%d edits", len(edits))
	}
	for _, e := range edits {
		if len(e.Path) > MaxPath+len("…") || len(e.Old) > 240+len("…") || len(e.New) > 240+len("…") {
			t.Errorf("an edit of %d, %d and %d bytes", len(e.Path), len(e.Old), len(e.New))
		}
	}
}

// What is nested too deep to be indented is all there, in one line.
func TestNothingIsCutFromWhatIsWritten(t *testing.T) {
	object := map[string]any{"spec": nested(300, map[string]any{"text": "a\nb\n", strings.Repeat("long", 400): []any{int64(1), nil, "é\u2028"}})}
	want, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var asYAML, asJSON bytes.Buffer
	if err := WriteYAML(&asYAML, object); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(&asJSON, object); err != nil {
		t.Fatal(err)
	}
	fromYAML, err := sigsyaml.YAMLToJSON(asYAML.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for form, got := range map[string][]byte{"YAML": fromYAML, "JSON": asJSON.Bytes()} {
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !Equal(a, b) {
			t.Errorf("%s says\n%s\nwant\n%s", form, got, want)
		}
	}
	for form, written := range map[string][]byte{"YAML": asYAML.Bytes(), "JSON": asJSON.Bytes()} {
		if lines := bytes.Count(written, []byte("\n")); lines > 2*MaxDepth+10 {
			t.Errorf("%s has %d lines", form, lines)
		}
	}
	if Fits(object) || Fits(nested(90, manyOf(100_000, int64(1)))) || !Fits(map[string]any{"spec": nested(50, wide(100, "x"))}) {
		t.Error("what fits is not told from what does not")
	}
}

// An object that fits is printed as kubectl prints it.
func TestWriteJSON(t *testing.T) {
	object := map[string]any{"b": []any{int64(1), map[string]any{}, []any{}, nil, "x<y"}, "a": map[string]any{"c": true}}
	want, err := json.MarshalIndent(object, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := WriteJSON(&got, object); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want)+"\n", got.String()); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestPath(t *testing.T) {
	var root *Path
	at := root.Field("spec").Field("containers").Element("main").Field("a/b").Field("it's")
	if got, want := at.String(), `spec.containers[main]['a/b']['it\'s']`; got != want || at.Depth() != 5 || root.String() != "" {
		t.Errorf("%s, want %s; depth %d", got, want, at.Depth())
	}
	for range 10_000 {
		at = at.Field("deeper")
	}
	if got := at.String(); len(got) > MaxPath+len("…") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes", len(got))
	}
}

// FuzzRender makes objects of a JSON text, put below some levels, beside some
// others, under keys of some length.
func FuzzRender(f *testing.F) {
	f.Add([]byte(`{"a":["b",{"name":"c"},{"name":"d"}],"text":"one\ntwo\n"}`), uint16(3), uint16(5), uint16(1))
	f.Add([]byte(`"\u0000\u2028"`), uint16(1500), uint16(10), uint16(0))
	f.Add([]byte(`[[],{},null,1e300,-0.5,""]`), uint16(100), uint16(1000), uint16(700))
	f.Fuzz(func(t *testing.T, text []byte, depth, width, length uint16) {
		var value any
		if json.Unmarshal(text, &value) != nil || len(text) > 10_000 {
			return
		}
		depth, width, length = depth%9500, width%500, length%3000
		level := map[string]any{}
		for i := range width {
			level[fmt.Sprint(strings.Repeat("k", int(length)), i)] = value
		}
		object := map[string]any{"a": nested(int(depth), level), "b": value}
		checkLines(t, object)
		checkCount(t, object)
		checkDifferences(t, object, map[string]any{"a": value, "b": level})
		for most := range 20 {
			if got := Brief(object, most); len(got) > most+len("…") {
				t.Errorf("%d bytes instead of %d", len(got), most)
			}
		}
		encoded, err := json.Marshal(object)
		if err != nil || len(encoded) > 1<<20 {
			return
		}
		var asYAML, asJSON bytes.Buffer
		if err := WriteYAML(&asYAML, object); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(&asJSON, object); err != nil {
			t.Fatal(err)
		}
		if most := (indentPerByte+6)*len(encoded) + 2*freeIndent; asYAML.Len() > most {
			t.Errorf("YAML has %d bytes, want at most %d", asYAML.Len(), most)
		}
		var again any
		if err := json.Unmarshal(asJSON.Bytes(), &again); err != nil || !Equal(again, any(object)) {
			t.Errorf("JSON does not say what the object says: %v", err)
		}
		if depth > 500 || len(encoded) > 50_000 {
			return // the library that reads YAML takes long
		}
		converted, err := sigsyaml.YAMLToJSON(asYAML.Bytes())
		if err != nil {
			t.Fatalf("%v in\n%s", err, asYAML.String())
		}
		if err := json.Unmarshal(converted, &again); err != nil || !Equal(again, any(object)) {
			t.Errorf("YAML does not say what the object says: %v\n%s", err, asYAML.String())
		}
	})
}
