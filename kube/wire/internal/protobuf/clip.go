package protobuf

import "reflect"

// clip takes from all slices in v the room to grow that a type's own decoder may
// have left: an append would write where another object's append has written.
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

// growable says whether there can be slices in a type that clip would find. A type
// within itself has its answer on an outer level.
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
