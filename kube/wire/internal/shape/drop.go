package shape

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CheckDrop returns an error for a path that the type does not have: a misspelt path
// would keep the field silently.
func CheckDrop(t reflect.Type, paths []string) error {
	if t == reflect.TypeFor[unstructured.Unstructured]() {
		return nil
	}
	for _, path := range paths {
		if err := checkPath(t, path); err != nil {
			return fmt.Errorf("wire: cannot drop %q from %v: %w", path, t, err)
		}
	}
	return nil
}

func checkPath(t reflect.Type, path string) error {
	names := strings.Split(path, ".")
	for i, name := range names {
		sf, ok := jsonField(t, name)
		if !ok || name == "" {
			return fmt.Errorf("%v has no field %q", t, name)
		}
		if t = elements(sf.Type); i < len(names)-1 && t.Kind() != reflect.Struct {
			return fmt.Errorf("%q is a %v, and only whole fields can be dropped", name, sf.Type)
		}
	}
	return nil
}

// elements is the struct that a field holds, points to, or has a list of.
func elements(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// jsonField finds a field by its JSON name, also in structs that are inlined. Its
// index leads there from t.
func jsonField(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		sf := t.Field(i)
		switch JSONName(sf) {
		case name:
			return sf, sf.IsExported()
		case "":
			inner, ok := sf.Type, sf.Type.Kind() == reflect.Struct
			if !ok {
				continue
			}
			if found, ok := jsonField(inner, name); ok {
				found.Index = append([]int{i}, found.Index...)
				return found, true
			}
		}
	}
	return reflect.StructField{}, false
}

// Drop removes a field from an object that was decoded with it.
func Drop(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			Drop(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			Drop(v.Index(i), path)
		}
	case reflect.Struct:
		name, rest, _ := strings.Cut(path, ".")
		sf, _ := jsonField(v.Type(), name)
		if inner := v.FieldByIndex(sf.Index); rest == "" {
			inner.SetZero()
		} else {
			Drop(inner, rest)
		}
	}
}
