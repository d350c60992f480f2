package apiserver

import (
	"maps"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// models describes types in OpenAPI, by the name that a reference uses.
//
// Built-in types are described by what the Go types say about themselves: their
// tags, and the texts that are generated with them. A real server has documents
// that were generated from the sources, which no module that we use contains.
type models map[string]any

// addEndpoint describes the objects of an endpoint.
func (m models) addEndpoint(e *endpoint) {
	kinds := []metav1.GroupVersionKind{{Group: e.group, Version: e.version, Kind: e.kind}}
	if e.custom {
		m.addCustom(e, kinds)
		return
	}
	object, err := scheme.New(e.gvk())
	if err != nil {
		return
	}
	name := m.add(reflect.TypeOf(object).Elem())
	model := maps.Clone(m[name].(map[string]any))
	model["x-kubernetes-group-version-kind"] = kinds
	m[name] = model
}

// addCustom describes them by their definition, in which the fields that all
// objects have are left out.
func (m models) addCustom(e *endpoint, kinds []metav1.GroupVersionKind) {
	model := map[string]any{"type": "object"}
	if validation := e.definition.Schema; validation != nil && validation.OpenAPIV3Schema != nil {
		if described, err := runtime.DefaultUnstructuredConverter.ToUnstructured(validation.OpenAPIV3Schema); err == nil {
			model = described
		}
	}
	properties, _ := model["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	texts := metav1.TypeMeta{}.SwaggerDoc()
	for _, name := range []string{"apiVersion", "kind"} {
		properties[name] = map[string]any{"type": "string", "description": texts[name]}
	}
	properties["metadata"] = m.reference(reflect.TypeFor[metav1.ObjectMeta]())
	model["properties"] = properties
	model["x-kubernetes-group-version-kind"] = kinds
	m[customModel(e)] = model
}

// customModel names a type as the real server does: its group backwards, like a
// package.
func customModel(e *endpoint) string {
	parts := strings.Split(e.group, ".")
	var backwards []string
	for i := range parts {
		backwards = append(backwards, parts[len(parts)-1-i])
	}
	return strings.Join(append(backwards, e.version, e.kind), ".")
}

// add describes a struct, and all that it refers to, and returns its name.
func (m models) add(t reflect.Type) string {
	name := modelName(t)
	if _, known := m[name]; known {
		return name
	}
	model := map[string]any{"type": "object"}
	m[name] = model // before its fields: some types contain themselves
	texts := swaggerTexts(t)
	annotate(model, texts[""])
	properties, required := map[string]any{}, []string{}
	for _, field := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if len(field.Index) > 1 && !inlined(t, field) || tag == "" || tag == "-" {
			continue
		}
		property := m.property(field.Type)
		text := texts[tag]
		if text == "" && len(field.Index) > 1 {
			text = swaggerTexts(t.FieldByIndex(field.Index[:1]).Type)[tag]
		}
		annotate(property, text)
		if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
			property["x-kubernetes-patch-strategy"] = strategy
		}
		if key := field.Tag.Get("patchMergeKey"); key != "" {
			property["x-kubernetes-patch-merge-key"] = key
		}
		properties[tag] = property
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			required = append(required, tag)
		}
	}
	model["properties"] = properties
	if len(required) > 0 {
		model["required"] = required
	}
	return name
}

// inlined says whether the fields of an embedded struct are written as fields of
// the one that embeds it.
func inlined(t reflect.Type, field reflect.StructField) bool {
	outer := t.Field(field.Index[0])
	return outer.Anonymous && strings.HasPrefix(outer.Tag.Get("json"), ",") || outer.Tag.Get("json") == ""
}

// property describes a value of a type.
func (m models) property(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return m.property(t.Elem())
	}
	if told, ok := reflect.Zero(t).Interface().(interface{ OpenAPISchemaType() []string }); ok {
		return scalar(t, told.OpenAPISchemaType())
	}
	switch t {
	case reflect.TypeFor[apiextensionsv1.JSON]():
		return anything()
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Struct:
		return m.reference(t)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": m.property(t.Elem())}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "format": "byte"}
		}
		return map[string]any{"type": "array", "items": m.property(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number", "format": "double"}
	case reflect.Int64, reflect.Uint64, reflect.Int:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Int32, reflect.Uint32, reflect.Int16, reflect.Int8:
		return map[string]any{"type": "integer", "format": "int32"}
	}
	return anything()
}

// anything is a schema that is not empty: kubectl explain treats an empty one as missing.
func anything() map[string]any { return map[string]any{"x-kubernetes-preserve-unknown-fields": true} }

// scalar describes a type that is written otherwise than it is built; if it does
// not say how, as anything.
func scalar(t reflect.Type, types []string) map[string]any {
	if len(types) == 0 {
		return anything()
	}
	property := map[string]any{"type": types[0]}
	if told, ok := reflect.Zero(t).Interface().(interface{ OpenAPISchemaFormat() string }); ok && told.OpenAPISchemaFormat() != "" {
		property["format"] = told.OpenAPISchemaFormat()
	}
	return property
}

// reference leads to the description of a struct, beside which a field can have
// a text of its own.
func (m models) reference(t reflect.Type) map[string]any {
	return map[string]any{"allOf": []any{map[string]any{"$ref": "#/components/schemas/" + m.add(t)}}}
}

func annotate(schema map[string]any, text string) {
	if text != "" {
		schema["description"] = text
	}
}

func modelName(t reflect.Type) string {
	if named, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return strings.NewReplacer("/", ".").Replace(t.PkgPath()) + "." + t.Name()
}

// swaggerTexts are what a type says of itself, under "", and of its fields.
func swaggerTexts(t reflect.Type) map[string]string {
	if told, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return told.SwaggerDoc()
	}
	return nil
}
