package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// prune takes off an object what its schema does not know, and tells what it was.
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
	complaints := pruneMap("", object, &root)
	for name, value := range kept {
		object[name] = value
	}
	slices.Sort(complaints)
	return complaints
}

func pruneMap(path string, object map[string]any, schema *apiextensionsv1.JSONSchemaProps) (complaints []string) {
	open := ptr.Deref(schema.XPreserveUnknownFields, false)
	for name, value := range object {
		here := strings.TrimPrefix(path+"."+name, ".")
		switch property, known := schema.Properties[name]; {
		case known:
			complaints = append(complaints, pruneValue(here, value, &property)...)
		case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
			complaints = append(complaints, pruneValue(here, value, schema.AdditionalProperties.Schema)...)
		case open || schema.AdditionalProperties != nil && schema.AdditionalProperties.Allows:
		case schema.XEmbeddedResource && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name):
		default:
			delete(object, name)
			complaints = append(complaints, fmt.Sprintf("unknown field %q", here))
		}
	}
	return complaints
}

func pruneValue(path string, value any, schema *apiextensionsv1.JSONSchemaProps) (complaints []string) {
	switch value := value.(type) {
	case map[string]any:
		return pruneMap(path, value, schema)
	case []any:
		if schema.Items == nil || schema.Items.Schema == nil {
			return nil
		}
		for i, item := range value {
			complaints = append(complaints, pruneValue(fmt.Sprintf("%s[%d]", path, i), item, schema.Items.Schema)...)
		}
	}
	return complaints
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
