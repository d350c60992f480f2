package shape

import (
	"reflect"
	"strings"
)

// JSONName is the name of a field in JSON; an inlined field has no name.
func JSONName(sf reflect.StructField) string {
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if name == "" && !sf.Anonymous && !strings.Contains(options, "inline") {
		return sf.Name
	}
	return name
}

// under is the path of a field within another; a field without a name is inlined.
func under(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

// PrivateMetadata are the fields of metadata that objects do not share by default.
var PrivateMetadata = []string{"labels", "annotations", "ownerReferences", "finalizers"}
