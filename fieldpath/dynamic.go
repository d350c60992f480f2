package fieldpath

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// eachDynamic walks decoded JSON. At a value of another Go type, it continues with
// a program for that type.
func eachDynamic(x any, steps []step, yield func(Value) bool) bool {
	for i, s := range steps {
		switch at := x.(type) {
		case nil:
			return true
		case map[string]any:
			if s.all {
				for _, key := range slices.Sorted(maps.Keys(at)) {
					if !eachDynamic(at[key], steps[i+1:], yield) {
						return false
					}
				}
				return true
			}
			x = at[s.name]
		case []any:
			if s.all {
				for _, element := range at {
					if !eachDynamic(element, steps[i+1:], yield) {
						return false
					}
				}
				return true
			}
			if s.index < 0 || s.index >= len(at) {
				return true
			}
			x = at[s.index]
		case map[string]string:
			if i < len(steps)-1 {
				return true
			}
			if s.all {
				return eachText(at, yield)
			}
			text, ok := at[s.name]
			return !ok || yield(StringValue(text))
		default:
			return eachTyped(at, steps[i:], yield)
		}
	}
	if v := dynamicLeaf(x); v.kind != Missing {
		return yield(v)
	}
	return true
}

// eachTyped continues in a Go type that decoded JSON does not have, but objects
// made by hand may: a struct, a slice of strings.
func eachTyped(x any, steps []step, yield func(Value) bool) bool {
	v := reflect.ValueOf(x)
	switch {
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		s := steps[0]
		if s.index >= 0 && s.index < v.Len() {
			return eachDynamic(v.Index(s.index).Interface(), steps[1:], yield)
		}
		for i := 0; s.all && i < v.Len(); i++ {
			if !eachDynamic(v.Index(i).Interface(), steps[1:], yield) {
				return false
			}
		}
		return true
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		s := steps[0]
		for _, key := range sortedKeys(v) {
			if (s.all || key.String() == s.name) && !eachDynamic(v.MapIndex(key).Interface(), steps[1:], yield) {
				return false
			}
		}
		return true
	case v.Kind() == reflect.Pointer && v.Elem().Kind() != reflect.Struct:
		return v.IsNil() || eachDynamic(v.Elem().Interface(), steps, yield)
	case v.Kind() != reflect.Struct && v.Kind() != reflect.Pointer:
		return true
	}
	below := newPath(steps)
	g, at, err := below.start(x)
	switch {
	case g == nil || err != nil:
		return true
	case g.object != nil:
		return eachDynamic(g.object(x), steps, yield)
	}
	return g.each(0, at, yield)
}

func eachText(m map[string]string, yield func(Value) bool) bool {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !yield(StringValue(m[key])) {
			return false
		}
	}
	return true
}

// dynamicLeaf reads a value of decoded JSON.
func dynamicLeaf(x any) Value {
	switch x := x.(type) {
	case nil:
		return Value{}
	case string:
		return StringValue(x)
	case bool:
		return BoolValue(x)
	case int64:
		return IntValue(x)
	case int:
		return IntValue(int64(x))
	case float64:
		return FloatValue(x)
	case time.Time:
		return TimeValue(x)
	case map[string]any:
		return there(x != nil, anObject)
	case []any:
		return there(x != nil, aList)
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return IntValue(n)
		}
		f, _ := x.Float64()
		return FloatValue(f)
	}
	v := reflect.ValueOf(x)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return Value{}
		}
		v = v.Elem()
	}
	l, ok := leafOf(v.Type())
	if !ok {
		return Value{}
	}
	g := program{read: l, last: v.Type()}
	return g.value(addressable(v))
}

func there(ok bool, v Value) Value {
	if ok {
		return v
	}
	return Value{}
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
