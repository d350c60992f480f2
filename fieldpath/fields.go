package fieldpath

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A field is one member of a struct as JSON sees it.
type field struct {
	// path leads to the field through embedded structs.
	path []reflect.StructField
	typ  reflect.Type
	// omitEmpty says that JSON leaves out an empty value, omitZero a zero one.
	omitEmpty, omitZero bool

	named bool
}

// known holds the fields of each struct type by name. It is never emptied: a
// program has a fixed number of types.
var known sync.Map // reflect.Type to map[string]field

// fieldsOf returns the JSON members of a struct type, with those of embedded
// structs, by the rules of encoding/json: the shallowest of a name wins, then the
// one named by a tag; if two are left, neither counts.
func fieldsOf(t reflect.Type) map[string]field {
	if m, ok := known.Load(t); ok {
		return m.(map[string]field)
	}
	fields := map[string]field{}
	level := []field{{typ: t}}
	for visited := map[reflect.Type]bool{}; len(level) > 0; {
		found := map[string][]field{}
		var next []field
		for _, at := range level {
			if visited[at.typ] {
				continue
			}
			visited[at.typ] = true
			for i := range at.typ.NumField() {
				name, f, embedded, ok := member(at, at.typ.Field(i))
				switch {
				case !ok:
				case embedded:
					next = append(next, f)
				default:
					found[name] = append(found[name], f)
				}
			}
		}
		for name, candidates := range found {
			if _, shadowed := fields[name]; shadowed {
				continue
			}
			if f, ok := dominant(candidates); ok {
				fields[name] = f
			} else {
				fields[name] = field{} // also hides deeper ones
			}
		}
		level = next
	}
	for name, f := range fields {
		if f.typ == nil {
			delete(fields, name)
		}
	}
	known.Store(t, fields)
	return fields
}

// member reads one Go field. A field that is embedded without a name of its own
// only leads to its members.
func member(at field, sf reflect.StructField) (name string, f field, embedded, ok bool) {
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return "", field{}, false, false
	}
	name, options, _ := strings.Cut(tag, ",")
	f = field{path: append(slices.Clone(at.path), sf), typ: sf.Type, named: name != ""}
	for option := range strings.SplitSeq(options, ",") {
		f.omitEmpty = f.omitEmpty || option == "omitempty"
		f.omitZero = f.omitZero || option == "omitzero"
	}
	if sf.Anonymous && name == "" {
		inner := sf.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			if !sf.IsExported() && sf.Type.Kind() == reflect.Pointer {
				return "", field{}, false, false
			}
			f.typ = inner
			return "", f, true, true
		}
	}
	if !sf.IsExported() {
		return "", field{}, false, false
	}
	if name == "" {
		name = sf.Name
	}
	return name, f, false, true
}

func dominant(candidates []field) (field, bool) {
	if len(candidates) == 1 {
		return candidates[0], true
	}
	named := slices.DeleteFunc(candidates, func(f field) bool { return !f.named })
	if len(named) == 1 {
		return named[0], true
	}
	return field{}, false
}
