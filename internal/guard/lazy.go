package guard

import (
	"reflect"
	"strings"
	"sync"
)

// isLazy reports whether a struct has a lock or an atomic value in it, so that its
// methods write to it although they only read. Messages of protobuf are such structs:
// printing or copying one stores where its type is described, and encoding it stores its
// size.
func isLazy(t reflect.Type) bool { return remembered(&lazy, t, hasLock) }

func hasLock(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return hasLock(t.Elem())
	case reflect.Struct:
		if path := t.PkgPath(); path == "sync" || strings.HasPrefix(path, "sync/") {
			return true
		}
		for i := range t.NumField() {
			if hasLock(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// lazy and reaching have the answers of isLazy and reachesLazy by type.
var lazy, reaching sync.Map

func remembered(answers *sync.Map, t reflect.Type, find func(reflect.Type) bool) bool {
	if known, ok := answers.Load(t); ok {
		return known.(bool)
	}
	found := find(t)
	answers.Store(t, found)
	return found
}

// reachesLazy reports whether the memory of a frozen value of a type would have a lazy
// struct in it. Such a value cannot be read-only.
func reachesLazy(t reflect.Type) bool {
	return remembered(&reaching, t, func(t reflect.Type) bool { return searchLazy(t, map[reflect.Type]bool{}) })
}

func searchLazy(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return t != locationType && searchLazy(t.Elem(), seen)
	case reflect.Struct:
		if isLazy(t) {
			return true
		}
		for i := range t.NumField() {
			if f := t.Field(i); !isPrivateReference(f) && searchLazy(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// isPrivateReference reports whether a field is a pointer or an interface that only the
// methods of its type can follow. It may lead anywhere, such as to the description of a
// type, and is left as it is.
func isPrivateReference(f reflect.StructField) bool {
	return !f.IsExported() && (f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Interface)
}
