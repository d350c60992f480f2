package render

import "reflect"

// Equal compares JSON values. It visits each part once, where reflect.DeepEqual keeps a
// table of all pairs that it has visited.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, left := range a {
			if right, ok := b[name]; !ok || !Equal(left, right) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i, left := range a {
			if !Equal(left, b[i]) {
				return false
			}
		}
		return true
	case string, bool, int64, float64, nil:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}
