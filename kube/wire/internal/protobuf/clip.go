package protobuf

import "reflect"

// clip removes the spare capacity of all slices in v, which a type's own decoder
// may have left: an append would write where another object's append has written.
func clip(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clip(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				clip(v.Field(i))
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			old := v.MapIndex(k)
			fresh := reflect.New(old.Type()).Elem()
			fresh.Set(old)
			clip(fresh)
			v.SetMapIndex(k, fresh)
		}
	case reflect.Slice:
		if v.Cap() > v.Len() {
			v.SetCap(v.Len())
		}
		for i := range v.Len() {
			clip(v.Index(i))
		}
	}
}

// growable says whether a type can contain slices that clip would find. For a type
// within itself, an outer level has the answer.
func growable(t reflect.Type, within map[reflect.Type]bool) bool {
	if within[t] {
		return false
	}
	within[t] = true
	switch t.Kind() {
	case reflect.Slice:
		return true
	case reflect.Pointer, reflect.Map:
		return growable(t.Elem(), within)
	case reflect.Struct:
		for i := range t.NumField() {
			if sf := t.Field(i); sf.IsExported() && growable(sf.Type, within) {
				return true
			}
		}
	}
	return false
}
