package web

import (
	"regexp"
	"strconv"
	"strings"
)

var simpleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// join adds a field's name to a path, in fieldpath's notation.
func join(path, name string) string {
	if !simpleName.MatchString(name) {
		return path + "['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "']"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// names are what the elements of a list are called in paths: by a field that
// tells them apart, as containers have a name and conditions a type; else by
// their place. An element keeps its name while others come and go before it.
type names struct {
	field  string
	values []string
}

func (n names) of(i int) string {
	if n.field == "" {
		return strconv.Itoa(i)
	}
	return n.values[i]
}

func elementNames(list []any) names {
	for _, field := range []string{"name", "type"} {
		if values, ok := distinct(list, field); ok {
			return names{field, values}
		}
	}
	return names{}
}

// distinct gives a field of every element, if all have one and no two the same.
func distinct(list []any, field string) ([]string, bool) {
	values := make([]string, len(list))
	seen := make(map[string]bool, len(list))
	for i, element := range list {
		m, _ := element.(map[string]any)
		value, ok := m[field].(string)
		if !ok || value == "" || seen[value] {
			return nil, false
		}
		seen[value] = true
		values[i] = value
	}
	return values, true
}
