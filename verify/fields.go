package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// differingFields are the paths, in the notation of package fieldpath, at which two
// objects differ, at most max of them. Values are not told: they may be secret.
func differingFields(a, b any, max int) []string {
	left, err := generic(a)
	if err != nil {
		return nil
	}
	right, err := generic(b)
	if err != nil {
		return nil
	}
	d := fieldDiff{max: max}
	d.compare("", left, right)
	return d.paths
}

// generic is an object as maps, lists and values.
func generic(object any) (any, error) {
	if c, ok := content(object).(map[string]any); ok {
		return c, nil
	}
	data, err := canonical(object)
	if err != nil {
		return nil, err
	}
	var c any
	err = json.Unmarshal(data, &c)
	return c, err
}

type fieldDiff struct {
	max   int
	paths []string
}

func (d *fieldDiff) compare(path string, a, b any) {
	if len(d.paths) >= d.max || equal(a, b) {
		return
	}
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.compareMaps(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			d.compareLists(path, a, b)
			return
		}
	}
	d.paths = append(d.paths, strings.TrimPrefix(path, "."))
}

func (d *fieldDiff) compareMaps(path string, a, b map[string]any) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		left, inA := a[name]
		right, inB := b[name]
		if inA != inB {
			left, right = inA, inB // also where the other is null
		}
		d.compare(path+step(name), left, right)
	}
}

func (d *fieldDiff) compareLists(path string, a, b []any) {
	for i := range max(len(a), len(b)) {
		left, right := any(i < len(a)), any(i < len(b))
		if i < len(a) && i < len(b) {
			left, right = a[i], b[i]
		}
		d.compare(fmt.Sprintf("%s[%d]", path, i), left, right)
	}
}

// step is how a path goes on to a name, which is quoted if it must be.
func step(name string) string {
	plain := name != "" && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	}) < 0
	if plain {
		return "." + name
	}
	return "['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "']"
}
