package verify

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/tarnproject/tarn/internal/render"
)

// differingFields are the paths, in the notation of package fieldpath, at which two
// objects differ, at most max of them. It returns no values: they may be secret.
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
	d.compare(nil, left, right)
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

// fieldDiff looks at each part of two objects once. What is nested deeper than
// [render.MaxDepth] is compared as a whole.
type fieldDiff struct {
	max   int
	paths []string
}

func (d *fieldDiff) compare(path *render.Path, a, b any) {
	if len(d.paths) >= d.max {
		return
	}
	if path.Depth() < render.MaxDepth {
		switch a := a.(type) {
		case map[string]any:
			if b, ok := b.(map[string]any); ok && (a == nil) == (b == nil) {
				d.compareMaps(path, a, b)
				return
			}
		case []any:
			if b, ok := b.([]any); ok && (a == nil) == (b == nil) {
				d.compareLists(path, a, b)
				return
			}
		}
	}
	if !equal(a, b) {
		d.paths = append(d.paths, path.String())
	}
}

func (d *fieldDiff) compareMaps(path *render.Path, a, b map[string]any) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		left, inA := a[name]
		right, inB := b[name]
		if inA != inB {
			left, right = inA, inB // also where the other is null
		}
		d.compare(path.Field(name), left, right)
	}
}

func (d *fieldDiff) compareLists(path *render.Path, a, b []any) {
	for i := range max(len(a), len(b)) {
		left, right := any(i < len(a)), any(i < len(b))
		if i < len(a) && i < len(b) {
			left, right = a[i], b[i]
		}
		d.compare(path.Element(strconv.Itoa(i)), left, right)
	}
}
