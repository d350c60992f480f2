package cli

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// checkFields finds fields that a resource does not have. The Go type of a built-in kind
// knows all its fields, unless the server is newer than the program: so a field that some
// object has is always accepted.
//
// For other kinds only the objects tell, and a field that none of them has may still be
// right. Then checkFields only prints a note.
func (a *app) checkFields(state *memory.Snapshot[mirror.Object], found *answer) error {
	for _, field := range slices.Concat(found.fields, slices.Concat(found.indexes...)) {
		known, ok := typeOf(found.resource, field)
		var wrong error
		if ok {
			wrong = field.Check(known)
		}
		switch {
		case ok && wrong == nil, !ok && state.Len() == 0, someHas(state, field):
		case ok:
			return usagef("%s", strings.ReplaceAll(wrong.Error(), known.String(), "a "+found.resource.Kind))
		default:
			fmt.Fprintf(a.errOut, "No object of %s has a field %s%s.\n", found.resource.Name(), field, didYouMean(near(field.String(), fieldsSeen(state))))
		}
	}
	return nil
}

// typeOf returns the Go type that knows a field, if there is one. Metadata is the same for
// all kinds.
func typeOf(r mirror.Resource, field *fieldpath.Path) (reflect.Type, bool) {
	if object, err := scheme.Scheme.New(r.GVK()); err == nil {
		return reflect.TypeOf(object), true
	}
	return reflect.TypeFor[*metav1.PartialObjectMetadata](), strings.HasPrefix(field.String(), "metadata.")
}

func someHas(state *memory.Snapshot[mirror.Object], field *fieldpath.Path) bool {
	for _, object := range state.All() {
		if value, err := field.First(object); err == nil && !value.IsMissing() {
			return true
		}
	}
	return false
}

// These bound the search for a field that the user may have meant: the number of objects, the
// depth, and the number of fields in all.
const (
	suggestObjects = 100
	suggestDepth   = 20
	suggestFields  = 5000
)

// fieldsSeen returns the paths of the fields of the first objects.
func fieldsSeen(state *memory.Snapshot[mirror.Object]) []string {
	paths, n := map[string]bool{}, 0
	for _, object := range state.All() {
		addFields(paths, "", object.Object, suggestDepth)
		if n++; n == suggestObjects {
			break
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// addFields leaves out names that have to be quoted: users made them up, and there are so
// many that one is always similar.
func addFields(paths map[string]bool, at string, value any, depth int) {
	if depth == 0 {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if len(paths) >= suggestFields {
				return
			}
			if !plainName.MatchString(name) {
				continue
			}
			path := strings.TrimPrefix(at+"."+name, ".")
			paths[path] = true
			addFields(paths, path, inner, depth-1)
		}
	case []any:
		for _, inner := range value {
			if len(paths) >= suggestFields {
				return
			}
			addFields(paths, at+"[*]", inner, depth-1)
		}
	}
}
