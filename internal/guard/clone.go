package guard

import "reflect"

// cloneOf copies a value that stays on Go's heap, with everything that it refers to, so
// that the program may change the original. Of a struct, public fields are cloned, and
// private ones copied as they are.
func cloneOf(v reflect.Value, depth int) reflect.Value {
	if depth > maxDepth {
		return v
	}
	switch v.Kind() {
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		own := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			own.SetMapIndex(entries.Key(), cloneOf(entries.Value(), depth+1))
		}
		return own
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		if reflect.Copy(own, v); v.Type().Elem().Kind() <= reflect.Complex128 {
			return own // numbers refer to nothing, and there may be very many
		}
		for i := range v.Len() {
			own.Index(i).Set(cloneOf(v.Index(i), depth+1))
		}
		return own
	case reflect.Interface:
		if v.IsNil() || !isPlain(v.Elem().Type()) {
			return v
		}
		own := reflect.New(v.Type()).Elem()
		own.Set(cloneOf(v.Elem(), depth+1))
		return own
	case reflect.Struct:
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		for i := range v.NumField() {
			if f := own.Field(i); f.CanSet() && isPlain(f.Type()) {
				f.Set(cloneOf(f, depth+1))
			}
		}
		return own
	}
	return v
}

// isPlain reports whether values of a type are made of maps, lists and other plain values,
// as decoded JSON is. What is behind a pointer may be anything, and is left alone.
func isPlain(t reflect.Type) bool { return t.Kind() != reflect.Pointer && !isLazy(t) }
