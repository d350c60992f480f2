package mirror

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
)

// Hidden stands for each value of a Secret that is not kept. It is not base64, so that nobody
// mistakes it for the value.
const Hidden = "(hidden)"

// HideValues returns a Secret without its values, and says whether there were any. Names of
// keys stay, since users look for them. The annotations that appliedCopies names,
// [kube.AppliedCopies] if there are none, are hidden too. A part with a shape that no server
// sends is hidden as a whole.
//
// The secret itself is unchanged; the result shares its other parts.
func HideValues(secret Object, appliedCopies ...string) (shown Object, hidden bool) {
	if len(appliedCopies) == 0 {
		appliedCopies = kube.AppliedCopies()
	}
	content := maps.Clone(secret.Object)
	for _, field := range []string{"data", "stringData"} {
		switch values := content[field].(type) {
		case nil:
		case map[string]any:
			if len(values) > 0 {
				content[field], hidden = hideAll(values), true
			}
		default:
			content[field], hidden = Hidden, true
		}
	}
	metadata, _ := content["metadata"].(map[string]any)
	if kept, found := hideCopies(metadata, appliedCopies); found {
		content["metadata"], hidden = kept, true
	}
	return &unstructured.Unstructured{Object: content}, hidden
}

func hideAll(values map[string]any) map[string]any {
	hidden := make(map[string]any, len(values))
	for key := range values {
		hidden[key] = Hidden
	}
	return hidden
}

// hideCopies returns metadata without the values of annotations that repeat the
// object, and false if there are none.
func hideCopies(metadata map[string]any, names []string) (map[string]any, bool) {
	switch annotations := metadata["annotations"].(type) {
	case nil:
		return nil, false
	case map[string]any:
		kept, found := maps.Clone(annotations), false
		for name := range annotations {
			if kube.NamesAnnotation(names, name) {
				kept[name], found = Hidden, true
			}
		}
		metadata = maps.Clone(metadata)
		metadata["annotations"] = kept
		return metadata, found
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "annotations")
	return metadata, true
}

// Shown returns the visible part of an object: a Secret without its values, as [HideValues]
// returns it, and any other object unchanged.
func (t *Table) Shown(object Object) Object {
	if !t.resource.Secret() {
		return object
	}
	shown, _ := HideValues(object, t.appliedCopies...)
	return shown
}

// transformOf returns the function that turns a source's objects into those that the table
// keeps: without some annotations, and without the values of Secrets. It is nil if nothing
// changes.
func (t *Table) transformOf(dropped []string, hide bool) func(Object) (Object, error) {
	if len(dropped) == 0 && !hide {
		return nil
	}
	return func(object Object) (Object, error) {
		// Objects that have none of the annotations stay unchanged.
		object = kube.StripAnnotations(object, dropped...)
		if hide {
			object, _ = HideValues(object, t.appliedCopies...)
		}
		return object, nil
	}
}

// thenShare lets the result of a transform share its equal parts with other objects. Its
// input shares nothing, because the transform may write to it.
func thenShare(transform func(Object) (Object, error), pool *wire.Pool) func(Object) (Object, error) {
	sharer := wire.NewSharer(pool, wire.Options{})
	return func(object Object) (Object, error) {
		kept, err := transform(object)
		if err != nil {
			return nil, err
		}
		if shared, ok := sharer.Share(kept).(*unstructured.Unstructured); ok {
			return shared, nil
		}
		return kept, nil
	}
}
