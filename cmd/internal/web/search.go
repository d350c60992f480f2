package web

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/memory/query"
)

// maxQuery bounds the cost of parsing a query; nobody types this much.
const maxQuery = 1000

const (
	space      = " \t\r\n"
	separators = space + ","
)

// search is a parsed search text: words, which an object must have in its key or
// labels, and filters in the syntax of package query.
//
// Words are not conditions of a query because a condition is about one field,
// and a word may be in any of several.
type search struct {
	words  []string
	labels []string
	fields []string
	// paths are the paths of fields, each in its shortest form.
	paths []string
}

// parseSearch parses terms with spaces or commas between them:
//
//	web                       a word
//	"two words"               text with a space
//	app=web  tier!=db  !old   a label
//	tier in (web, api)        a label
//	.reason=Failed            a field, by its path
//	status.phase!=Running     the dot may be left out here: metadata, spec, status
//	spec.replicas>3
func parseSearch(text string) (search, error) {
	var q search
	if len(text) > maxQuery {
		return q, fmt.Errorf("the query has %d bytes: %d are enough for anything useful", len(text), maxQuery)
	}
	rest := strings.TrimLeft(text, separators)
	for rest != "" {
		var err error
		if rest, err = q.term(rest); err != nil {
			return search{}, err
		}
		rest = strings.TrimLeft(rest, separators)
	}
	if _, err := nothing.Count(q.filters()); err != nil {
		return search{}, err
	}
	return q, nil
}

// nothing is a store to try queries on.
var nothing = memory.New[*unstructured.Unstructured]()

// term parses one term from the front.
func (q *search) term(text string) (rest string, err error) {
	if text[0] == '"' {
		word, rest, closed := strings.Cut(text[1:], `"`)
		if !closed {
			return "", fmt.Errorf(`%s: a closing " is missing`, text)
		}
		q.word(word)
		return rest, nil
	}
	absent := text[0] == '!'
	start := 0
	if absent {
		start = 1
	}
	end := start + fieldpath.End(text[start:], separators+"=!<>()\"")
	name := text[start:end]
	filterEnd := end
	switch {
	case absent:
	case operatorAt(text[end:]) > 0:
		filterEnd = end + operatorAt(text[end:])
		filterEnd += fieldpath.End(text[filterEnd:], separators+"=!<>()\"")
	case setOperator(text[end:]):
		length := strings.IndexByte(text[end:], ')')
		if length < 0 {
			return "", fmt.Errorf("%s: a closing ) is missing", text)
		}
		filterEnd = end + length + 1
	case name == "":
		return "", fmt.Errorf("%s: a name is wanted in front", text)
	case name[0] != '.':
		q.word(name)
		return text[end:], nil
	}
	return text[filterEnd:], q.filter(name, text[:filterEnd])
}

func (q *search) word(word string) {
	if word != "" {
		q.words = append(q.words, strings.ToLower(word))
	}
}

// filter adds a selector about one name.
func (q *search) filter(name, selector string) error {
	if name == "" {
		return fmt.Errorf("%s: a name is wanted in front, such as app=web or status.phase=Running", selector)
	}
	if !isField(name) {
		q.labels = append(q.labels, selector)
		return nil
	}
	path, err := fieldpath.Parse(name)
	if err != nil {
		return err
	}
	q.fields = append(q.fields, selector)
	q.paths = append(q.paths, path.String())
	return nil
}

// isField distinguishes a field's path from a label's name. A label's name may have
// dots too, so without a leading dot only metadata, spec and status begin a field.
func isField(name string) bool {
	for _, prefix := range []string{".", "metadata.", "spec.", "status."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// operatorAt is the length of the operator that text begins with, 0 if none.
func operatorAt(text string) int {
	for _, operator := range []string{"==", "!=", ">=", "<=", "=", ">", "<"} {
		if strings.HasPrefix(text, operator) {
			return len(operator)
		}
	}
	return 0
}

// setOperator reports whether " in (" or " notin (" follows.
func setOperator(text string) bool {
	trimmed := strings.TrimLeft(text, space)
	if len(trimmed) == len(text) {
		return false
	}
	for _, operator := range []string{"in", "notin"} {
		if list, ok := strings.CutPrefix(trimmed, operator); ok && strings.HasPrefix(strings.TrimLeft(list, space), "(") {
			return true
		}
	}
	return false
}

// filters is the part of the search that the store answers.
func (q search) filters() query.Query {
	return query.Where().Labels(strings.Join(q.labels, ",")).Fields(strings.Join(q.fields, ","))
}

// all reports whether every object matches.
func (q search) all() bool { return len(q.words)+len(q.labels)+len(q.fields) == 0 }

// matches reports whether an object has every word in its key or in a label.
func (q search) matches(key tarn.Key, object *unstructured.Unstructured) bool {
	for _, word := range q.words {
		if !strings.Contains(strings.ToLower(string(key)), word) && !labelled(object, word) {
			return false
		}
	}
	return true
}

// labelled searches for a word in "name=value" of each label. It reads the map in place,
// because GetLabels makes a new one, and joins name and value only if the word may be in
// both.
func labelled(object *unstructured.Unstructured, word string) bool {
	metadata, _ := object.Object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	across := strings.Contains(word, "=")
	for name, value := range labels {
		text, _ := value.(string)
		name, text = strings.ToLower(name), strings.ToLower(text)
		if strings.Contains(name, word) || strings.Contains(text, word) || across && strings.Contains(name+"="+text, word) {
			return true
		}
	}
	return false
}
