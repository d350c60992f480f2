package ctrlcache

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldReader returns a function that reads one field, named by its path in JSON,
// as text.
//
//   - A field that is not set is the empty text, as in the API server.
//   - A path that the type cannot have is an error, so that a slip does not pass
//     for "no such object". Unstructured objects have no type: there any path may
//     be unset.
//   - Below a map of texts, such as labels, the rest of the path is one key, dots
//     included.
func (v readTarget) fieldReader(path string) (func(client.Object) (string, error), error) {
	switch path {
	case nameField:
		return func(o client.Object) (string, error) { return o.GetName(), nil }, nil
	case namespaceField:
		return func(o client.Object) (string, error) { return o.GetNamespace(), nil }, nil
	}
	if v.as == metadataOnly {
		// Whatever copy serves it, metadata has the fields of metadata.
		if _, err := compile(reflect.TypeFor[*metav1.PartialObjectMetadata](), path); err != nil {
			return nil, v.noField(path, err)
		}
	}
	if v.form == unstructuredForm {
		return func(o client.Object) (string, error) {
			u, ok := o.(*unstructured.Unstructured)
			if !ok {
				return "", v.noField(path, fmt.Errorf("the cache holds a %T", o))
			}
			return textAt(u.Object, path)
		}, nil
	}
	// A transform may have made another type of the objects.
	compiled := map[reflect.Type]steps{}
	if _, err := compile(v.goType, path); err != nil {
		return nil, v.noField(path, err)
	}
	return func(o client.Object) (string, error) {
		t := reflect.TypeOf(o)
		way, ok := compiled[t]
		if !ok {
			var err error
			if way, err = compile(t, path); err != nil {
				return "", v.noField(path, err)
			}
			compiled[t] = way
		}
		return way.read(reflect.ValueOf(o))
	}, nil
}

func (v readTarget) noField(path string, err error) error {
	//lint:ignore ST1005 programs look for controller-runtime's words
	return fmt.Errorf("Index with name %s does not exist, and %v has no such field: %w; add an index of that name by IndexField, or name a field as in JSON", indexName(path), v.gvk, err)
}

// steps lead from an object to one of its fields.
type steps []func(reflect.Value) reflect.Value

// read follows the steps as far as there is something.
func (s steps) read(v reflect.Value) (string, error) {
	for _, step := range s {
		if v = step(v); !v.IsValid() {
			return "", nil
		}
	}
	return text(v)
}

// compile finds the steps to a path in a type.
func compile(t reflect.Type, path string) (way steps, err error) {
	for rest := path; rest != ""; {
		if t.Kind() == reflect.Pointer {
			way, t = append(way, reflect.Value.Elem), t.Elem()
			continue
		}
		name, tail, _ := strings.Cut(rest, ".")
		switch {
		case t.Kind() == reflect.Struct:
			field, ok := jsonField(t, name)
			if !ok {
				return nil, fmt.Errorf("%v has no field %q", t, name)
			}
			way, t = append(way, func(v reflect.Value) reflect.Value {
				found, err := v.FieldByIndexErr(field.Index)
				if err != nil {
					return reflect.Value{} // an embedded pointer that is nil
				}
				return found
			}), field.Type
		case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
			if isText(t.Elem()) {
				name, tail = rest, ""
			}
			key := reflect.ValueOf(name).Convert(t.Key())
			way, t = append(way, func(v reflect.Value) reflect.Value { return v.MapIndex(key) }), t.Elem()
		default:
			return nil, fmt.Errorf("%v has no fields, so not %q", t, rest)
		}
		rest = tail
	}
	if !isText(t) {
		return nil, fmt.Errorf("it is a %v and not one value", t)
	}
	return way, nil
}

// jsonField finds the field of a struct that has a name in JSON.
func jsonField(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "" && field.Anonymous && inner.Kind() == reflect.Struct:
			if found, ok := jsonField(inner, name); ok {
				found.Index = append([]int{i}, found.Index...)
				return found, true
			}
		case !field.IsExported():
		case tag == name, tag == "" && field.Name == name:
			return field, true
		}
	}
	return reflect.StructField{}, false
}

// isText says that a value of this type can be written as one text.
func isText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Pointer:
		return isText(t.Elem())
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// text is a value in the form that a field selector compares.
func text(v reflect.Value) (string, error) {
	for v.Kind() == reflect.Pointer {
		if v = v.Elem(); !v.IsValid() {
			return "", nil
		}
	}
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return "", err
	}
	switch raw[0] {
	case '"':
		var s string
		return s, json.Unmarshal(raw, &s)
	case 'n': // null
		return "", nil
	case '{', '[':
		return "", fmt.Errorf("it is a %v and not one value", v.Type())
	}
	return string(raw), nil
}

// textAt reads a path of unstructured content. A key with dots is found where no
// shorter one is.
func textAt(content map[string]any, path string) (string, error) {
	name, rest, deeper := strings.Cut(path, ".")
	for {
		value, ok := content[name]
		switch inner, isMap := value.(map[string]any); {
		case ok && !deeper:
			if value == nil {
				return "", nil
			}
			return text(reflect.ValueOf(value))
		case ok && isMap:
			return textAt(inner, rest)
		case !deeper:
			return "", nil
		}
		var next string
		next, rest, deeper = strings.Cut(rest, ".")
		name += "." + next
	}
}
