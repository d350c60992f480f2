package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// prune removes fields that the schema does not know from an object, and returns
// their paths.
func prune(object map[string]any, validation *apiextensionsv1.CustomResourceValidation) []string {
	if validation == nil || validation.OpenAPIV3Schema == nil {
		return nil
	}
	root := *validation.OpenAPIV3Schema
	// What every object has needs no schema.
	kept := map[string]any{}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if value, ok := object[name]; ok {
			kept[name] = value
			delete(object, name)
		}
	}
	var found complaints
	found.pruneMap(nil, object, &root)
	for name, value := range kept {
		object[name] = value
	}
	slices.Sort(found.list)
	return found.all()
}

// complaints are what a careful reader would object to: the first of them, and how
// many more there are.
type complaints struct {
	list []string
	more int
}

// add makes the text of a complaint only if there is room for it.
func (c *complaints) add(text func() string) {
	if len(c.list) >= maxComplaints {
		c.more++
		return
	}
	c.list = append(c.list, text())
}

func (c *complaints) all() []string {
	if c.more > 0 {
		c.list = append(c.list, fmt.Sprintf("and %d more", c.more))
	}
	return c.list
}

// pruneMap continues below a path, whose text is made only when it is reported.
func (c *complaints) pruneMap(path *field.Path, object map[string]any, schema *apiextensionsv1.JSONSchemaProps) {
	open := ptr.Deref(schema.XPreserveUnknownFields, false)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		switch property, known := schema.Properties[name]; {
		case known:
			c.pruneValue(child(path, name), value, &property)
		case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
			c.pruneValue(child(path, name), value, schema.AdditionalProperties.Schema)
		case open || schema.AdditionalProperties != nil && schema.AdditionalProperties.Allows:
		case schema.XEmbeddedResource && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name):
		default:
			delete(object, name)
			c.add(func() string { return fmt.Sprintf("unknown field %q", child(path, name)) })
		}
	}
}

func (c *complaints) pruneValue(path *field.Path, value any, schema *apiextensionsv1.JSONSchemaProps) {
	switch value := value.(type) {
	case map[string]any:
		c.pruneMap(path, value, schema)
	case []any:
		if schema.Items == nil || schema.Items.Schema == nil {
			return
		}
		for i, item := range value {
			c.pruneValue(path.Index(i), item, schema.Items.Schema)
		}
	}
}

// fill puts the defaults of a schema where nothing is, at all depths that exist.
func fill(value any, schema *apiextensionsv1.JSONSchemaProps) {
	switch value := value.(type) {
	case map[string]any:
		for name, property := range schema.Properties {
			current, there := value[name]
			if property.Default != nil && (!there || current == nil && !property.Nullable) {
				var initial any
				if json.Unmarshal(property.Default.Raw, &initial) == nil {
					value[name] = integers(initial)
				}
			}
			if current, there := value[name]; there {
				fill(current, &property)
			}
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			for name, item := range value {
				if _, known := schema.Properties[name]; !known {
					fill(item, schema.AdditionalProperties.Schema)
				}
			}
		}
	case []any:
		if schema.Items != nil && schema.Items.Schema != nil {
			for _, item := range value {
				fill(item, schema.Items.Schema)
			}
		}
	}
}

// integers turns whole numbers into what unstructured objects hold them as.
func integers(value any) any {
	switch value := value.(type) {
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	case map[string]any:
		for name, item := range value {
			value[name] = integers(item)
		}
	case []any:
		for i, item := range value {
			value[i] = integers(item)
		}
	}
	return value
}
