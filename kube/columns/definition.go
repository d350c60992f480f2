package columns

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// Defined returns the columns of a custom resource from a version of its definition
// (a CustomResourceDefinition): its printer columns, or, if it has none, the scalar fields
// of spec and status, with the prefixes spec_ and status_.
//
// Names consist of lower-case letters, digits and underscores. Columns that every table
// has are left out, and so are columns that cannot be read.
func Defined(definition *unstructured.Unstructured, version string) []Column {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		served, ok := v.(map[string]any)
		if !ok || served["name"] != version {
			continue
		}
		if shown := printed(served); len(shown) > 0 {
			return shown
		}
		return described(served)
	}
	return nil
}

// printed returns the printer columns of a version.
func printed(version map[string]any) []Column {
	all, _, _ := unstructured.NestedSlice(version, "additionalPrinterColumns")
	var columns []Column
	for _, c := range all {
		described, ok := c.(map[string]any)
		if !ok {
			continue
		}
		name, _ := described["name"].(string)
		kind, _ := described["type"].(string)
		path, _ := described["jsonPath"].(string)
		if path == ".metadata.creationTimestamp" {
			continue // it is the column created
		}
		add(&columns, Column{Name: columnName(name), Type: columnType(kind), Path: "{" + path + "}"})
	}
	return columns
}

// described returns the scalar fields of spec and status in a version's schema.
func described(version map[string]any) []Column {
	var columns []Column
	for _, part := range []string{"spec", "status"} {
		properties, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", part, "properties")
		names := make([]string, 0, len(properties))
		for name := range properties {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			property, _ := properties[name].(map[string]any)
			kind, _ := property["type"].(string)
			if property["x-kubernetes-int-or-string"] == true {
				kind = "string"
			}
			if kind == "" || kind == "object" || kind == "array" {
				continue
			}
			add(&columns, Column{Name: part + "_" + columnName(name), Type: columnType(kind), Path: "{." + part + "['" + name + "']}"})
		}
	}
	return columns
}

// maxDefined is how many columns a definition may add: hundreds of columns are not
// useful, and each is written with every object.
const maxDefined = 64

// longestName is the longest name of a column: a longer one is not practical in a query.
const longestName = 100

// add adds a column if it is valid and new.
func add(columns *[]Column, c Column) {
	taken := func(known Column) bool { return known.Name == c.Name }
	if c.Name == "" || len(c.Name) > longestName || len(*columns) == maxDefined || slices.ContainsFunc(*columns, taken) || slices.Contains(reserved, c.Name) || strings.HasPrefix(c.Name, "object_") {
		return
	}
	if slices.ContainsFunc(metadataColumns, func(m column) bool { return m.Name == c.Name }) {
		return
	}
	if _, err := byJSONPath(c); err != nil {
		return
	}
	*columns = append(*columns, c)
}

// reserved holds the names of columns that every table has beside its metadata.
var reserved = []string{"id", "key", "labels", "object"}

// columnName writes readyReplicas and "Ready Replicas" as ready_replicas.
func columnName(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
			lower = true
			continue
		case r >= 'A' && r <= 'Z':
			if lower {
				b.WriteByte('_')
			}
			b.WriteRune(unicode.ToLower(r))
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		lower = false
	}
	return strings.TrimSuffix(b.String(), "_")
}

func columnType(kind string) string {
	switch kind {
	case "integer", "boolean":
		return "INTEGER"
	case "number":
		return "REAL"
	}
	return "TEXT"
}

// byJSONPath returns a column for a JSONPath, which has filters that field paths do not.
func byJSONPath(c Column) (column, error) {
	finder := jsonpath.New(c.Name).AllowMissingKeys(true)
	if err := finder.Parse(c.Path); err != nil {
		return column{}, fmt.Errorf("the column %s: %w", c.Name, err)
	}
	var turn sync.Mutex // a JSONPath is not safe for concurrent use
	return column{Column: c, read: func(o metav1.Object) (any, error) {
		turn.Lock()
		defer turn.Unlock()
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("a JSONPath cannot be read from a %T", o)
		}
		found, err := finder.FindResults(u.Object)
		if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].IsValid() || !found[0][0].CanInterface() {
			return nil, err
		}
		return asSQL(found[0][0].Interface(), c.Type), nil
	}}, nil
}

// asSQL converts a JSON value to a column's type; a value that does not fit becomes text.
func asSQL(v any, kind string) any {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return v
	case bool:
		return v
	case int64:
		if kind == "REAL" {
			return float64(v)
		}
		return v
	case float64:
		if kind == "INTEGER" && v == float64(int64(v)) {
			return int64(v)
		}
		return v
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return JSON(raw)
}
