package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// check holds a custom resource against its schema: types, required fields,
// enumerations, bounds of numbers, sizes and patterns. Rules in CEL, formats and
// the logical combinations are not looked at.
//
// It ends at [maxComplaints] problems.
func check(path *field.Path, value any, schema *apiextensionsv1.JSONSchemaProps) (problems field.ErrorList) {
	if value == nil && schema.Nullable {
		return nil
	}
	if !typed(value, schema) {
		return field.ErrorList{field.TypeInvalid(path, typeName(value), fmt.Sprintf("%s in body must be of type %s: %q", path, schema.Type, typeName(value)))}
	}
	if len(schema.Enum) > 0 && !slices.ContainsFunc(schema.Enum, func(allowed apiextensionsv1.JSON) bool { return sameJSON(allowed.Raw, value) }) {
		names := make([]string, len(schema.Enum))
		for i, allowed := range schema.Enum {
			names[i] = unquote(allowed.Raw)
		}
		problems = append(problems, field.NotSupported(path, shown(value), names))
	}
	switch value := value.(type) {
	case map[string]any:
		problems = append(problems, checkObject(path, value, schema)...)
	case []any:
		problems = append(problems, checkSize(path, value, len(value), schema.MinItems, schema.MaxItems, "items")...)
		if schema.Items != nil && schema.Items.Schema != nil {
			for i, item := range value {
				if len(problems) >= maxComplaints {
					break
				}
				problems = append(problems, check(path.Index(i), item, schema.Items.Schema)...)
			}
		}
	case string:
		problems = append(problems, checkSize(path, value, utf8.RuneCountInString(value), schema.MinLength, schema.MaxLength, "chars long")...)
		if schema.Pattern != "" {
			if pattern, err := regexp.Compile(schema.Pattern); err == nil && !pattern.MatchString(value) {
				problems = append(problems, field.Invalid(path, shown(value), fmt.Sprintf("%s in body should match '%s'", path, schema.Pattern)))
			}
		}
	case int64:
		problems = append(problems, checkBounds(path, value, float64(value), schema)...)
	case float64:
		problems = append(problems, checkBounds(path, value, value, schema)...)
	}
	return problems
}

func checkObject(path *field.Path, object map[string]any, schema *apiextensionsv1.JSONSchemaProps) (problems field.ErrorList) {
	for _, name := range schema.Required {
		if _, there := object[name]; !there {
			problems = append(problems, field.Required(child(path, name), ""))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if len(problems) >= maxComplaints {
			break
		}
		value := object[name]
		if property, known := schema.Properties[name]; known {
			problems = append(problems, check(child(path, name), value, &property)...)
		} else if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			problems = append(problems, check(child(path, name), value, schema.AdditionalProperties.Schema)...)
		}
	}
	slices.SortStableFunc(problems, func(a, b *field.Error) int {
		if a.Field < b.Field {
			return -1
		}
		return 1
	})
	return problems
}

func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

func checkSize(path *field.Path, value any, size int, least, most *int64, unit string) (problems field.ErrorList) {
	if least != nil && int64(size) < *least {
		problems = append(problems, field.Invalid(path, shown(value), fmt.Sprintf("%s in body should be at least %d %s", path, *least, unit)))
	}
	if most != nil && int64(size) > *most {
		problems = append(problems, field.Invalid(path, shown(value), fmt.Sprintf("%s in body should be at most %d %s", path, *most, unit)))
	}
	return problems
}

func checkBounds(path *field.Path, value any, number float64, schema *apiextensionsv1.JSONSchemaProps) (problems field.ErrorList) {
	if schema.Minimum != nil && (number < *schema.Minimum || schema.ExclusiveMinimum && number == *schema.Minimum) {
		problems = append(problems, field.Invalid(path, shown(value), fmt.Sprintf("%s in body should be greater than or equal to %v", path, *schema.Minimum)))
	}
	if schema.Maximum != nil && (number > *schema.Maximum || schema.ExclusiveMaximum && number == *schema.Maximum) {
		problems = append(problems, field.Invalid(path, shown(value), fmt.Sprintf("%s in body should be less than or equal to %v", path, *schema.Maximum)))
	}
	return problems
}

// typed says whether a value is of the type of its schema.
func typed(value any, schema *apiextensionsv1.JSONSchemaProps) bool {
	name := typeName(value)
	switch {
	case schema.Type == "" || schema.Type == name:
		return true
	case schema.Type == "number":
		return name == "integer"
	}
	return schema.XIntOrString && (name == "integer" || name == "string")
}

// shown is what is repeated of a value that is complained about.
func shown(value any) any {
	switch value := value.(type) {
	case string:
		if len(value) > maxShown {
			return strings.ToValidUTF8(value[:maxShown], "") + "…"
		}
	case map[string]any, []any:
		return typeName(value)
	}
	return value
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	}
	return "number"
}

func sameJSON(raw []byte, value any) bool {
	var other any
	return json.Unmarshal(raw, &other) == nil && reflect.DeepEqual(other, value)
}

func unquote(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
