package cache

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// A MutationReport says what was changed in an object that is in a cache.
type MutationReport struct {
	// Cache is the detector's name.
	Cache string
	// Type and Key name the object. Key is the one that it had when it came into the cache.
	Type, Key string
	// Changes are the fields that differ, in the order of the type's fields.
	Changes []FieldChange
}

// A FieldChange is one field that differs, with its value when it came into the
// cache and now. A side that is absent is "<none>".
type FieldChange struct {
	Path    string
	Was, Is string
}

func (c FieldChange) String() string { return fmt.Sprintf("%s: %s -> %s", c.Path, c.Was, c.Is) }

// String is one line for the object and one for each change.
func (r MutationReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CACHE %s ALTERED! %s %s", r.Cache, r.Type, r.Key)
	for _, change := range r.Changes {
		b.WriteString("\n\t" + change.String())
	}
	return b.String()
}

// fieldChanges compares two objects of one type, field by field.
func fieldChanges(was, is any) []FieldChange {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	// The content of an unstructured object is a field of it, but no part of a
	// path that its user would write.
	if u, ok := was.(runtime.Unstructured); ok {
		if v, ok := is.(runtime.Unstructured); ok {
			was, is = u.UnstructuredContent(), v.UnstructuredContent()
		}
	}
	var d difference
	w, i := reflect.ValueOf(was), reflect.ValueOf(is)
	if w.Kind() == reflect.Pointer && i.Kind() == reflect.Pointer && !w.IsNil() && !i.IsNil() {
		w, i = w.Elem(), i.Elem()
	}
	d.contents("", w, i)
	return d.changes
}

type difference struct {
	changes []FieldChange
}

// at compares what stands at a path. A type that marshals itself (a time, a
// quantity) is compared by what it marshals to: its fields are its own affair,
// and some of them are caches that reading fills.
func (d *difference) at(path string, was, is reflect.Value) {
	if !was.IsValid() || !is.IsValid() || was.Type() != is.Type() {
		if was.IsValid() || is.IsValid() {
			d.changed(path, was, is)
		}
		return
	}
	if w, ok := marshaled(was); ok {
		if i, ok := marshaled(is); ok {
			if w != i {
				d.changed(path, was, is)
			}
			return
		}
	}
	d.contents(path, was, is)
}

func (d *difference) contents(path string, was, is reflect.Value) {
	switch was.Kind() {
	case reflect.Struct:
		d.fields(path, was, is)
	case reflect.Map:
		d.entries(path, was, is)
	case reflect.Slice, reflect.Array:
		d.elements(path, was, is)
	case reflect.Pointer, reflect.Interface:
		if was.IsNil() != is.IsNil() {
			d.changed(path, was, is)
		} else if !was.IsNil() {
			d.at(path, was.Elem(), is.Elem())
		}
	case reflect.Func:
		if !was.IsNil() || !is.IsNil() {
			d.changed(path, was, is)
		}
	default:
		if !was.Equal(is) {
			d.changed(path, was, is)
		}
	}
}

func (d *difference) fields(path string, was, is reflect.Value) {
	for n := range was.NumField() {
		name, inline := jsonName(was.Type().Field(n))
		if !inline {
			name = join(path, name)
		} else {
			name = path
		}
		d.at(name, was.Field(n), is.Field(n))
	}
}

func (d *difference) entries(path string, was, is reflect.Value) {
	if was.IsNil() != is.IsNil() {
		d.changed(path, was, is)
		return
	}
	named := map[string]reflect.Value{}
	for _, key := range append(was.MapKeys(), is.MapKeys()...) {
		named[fmt.Sprint(key)] = key
	}
	names := make([]string, 0, len(named))
	for name := range named {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		d.at(join(path, name), was.MapIndex(named[name]), is.MapIndex(named[name]))
	}
}

func (d *difference) elements(path string, was, is reflect.Value) {
	if was.Kind() == reflect.Slice && was.IsNil() != is.IsNil() {
		d.changed(path, was, is)
		return
	}
	if was.Type().Elem().Kind() == reflect.Uint8 {
		if !slices.Equal(byteValues(was), byteValues(is)) {
			d.changed(path, was, is)
		}
		return
	}
	element := func(v reflect.Value, n int) reflect.Value {
		if n < v.Len() {
			return v.Index(n)
		}
		return reflect.Value{}
	}
	for n := range max(was.Len(), is.Len()) {
		d.at(fmt.Sprintf("%s[%d]", path, n), element(was, n), element(is, n))
	}
}

func byteValues(v reflect.Value) []byte {
	content := make([]byte, v.Len())
	for n := range content {
		content[n] = byte(v.Index(n).Uint())
	}
	return content
}

func (d *difference) changed(path string, was, is reflect.Value) {
	d.changes = append(d.changes, FieldChange{Path: path, Was: display(was), Is: display(is)})
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func join(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return fmt.Sprintf("%s[%q]", path, name)
	case path == "":
		return name
	}
	return path + "." + name
}

// jsonName is the name that users know a field by; inline says that its own
// fields stand beside it.
func jsonName(field reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		return field.Name, strings.Contains(options, "inline") || field.Anonymous && field.Type.Kind() == reflect.Struct
	}
	return name, false
}

func marshaled(v reflect.Value) (string, bool) {
	if !v.CanInterface() || v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", false
	}
	marshaler, ok := v.Interface().(json.Marshaler)
	if !ok {
		return "", false
	}
	text, err := marshaler.MarshalJSON()
	return string(text), err == nil
}

// display shows a value as JSON, which is how users write it, and shortens it:
// a whole pod spec in a log helps nobody.
func display(v reflect.Value) string {
	const longest = 200
	if !v.IsValid() {
		return "<none>"
	}
	text := fmt.Sprint(v)
	if v.CanInterface() {
		if asJSON, err := json.Marshal(v.Interface()); err == nil {
			text = string(asJSON)
		}
	}
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
