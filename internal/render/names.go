package render

import "strconv"

// names returns the names of a list's elements in paths: the value of a field that is
// unique, such as the name of a container or the type of a condition; otherwise the index.
// An element keeps its name when others are added or removed before it.
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

// namingFields are tried in this order, as the API's own patches do.
var namingFields = []string{"name", "type", "uid", "key", "ip", "containerPort", "port"}

func elementNames(list []any) names {
	if len(list) == 0 {
		return names{}
	}
	for _, field := range namingFields {
		if values, ok := distinct(list, field); ok {
			return names{field, values}
		}
	}
	return names{}
}

// distinct returns a field of every element, if all have it and no two are the same.
func distinct(list []any, field string) ([]string, bool) {
	if first, _ := list[0].(map[string]any); first[field] == nil {
		return nil, false
	}
	values := make([]string, len(list))
	seen := make(map[string]bool, len(list))
	for i, element := range list {
		m, _ := element.(map[string]any)
		value := ""
		switch v := m[field].(type) {
		case string:
			value = v
		case int64:
			value = strconv.FormatInt(v, 10)
		case float64:
			value = strconv.FormatFloat(v, 'g', -1, 64)
		}
		if value == "" || seen[value] {
			return nil, false
		}
		seen[value] = true
		values[i] = value
	}
	return values, true
}
