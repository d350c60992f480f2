package mirror

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/kube/wire"
)

// Hidden stands for each value of a Secret that is not kept. It is no base64, so
// that nobody takes it for the value.
const Hidden = "(hidden)"

// lastApplied is the annotation in which kubectl repeats the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// isSecrets says whether objects of the resource have values to be hidden.
func isSecrets(gr schema.GroupResource) bool { return gr == schema.GroupResource{Resource: "secrets"} }

// hideSecret takes the values out of a Secret. Names of keys stay, since that is
// what people look for.
func hideSecret(secret Object) (Object, error) {
	for _, field := range []string{"data", "stringData"} {
		value, ok := secret.Object[field]
		if !ok || value == nil {
			continue
		}
		keys, ok := value.(map[string]any)
		if !ok {
			secret.Object[field] = Hidden
			continue
		}
		for key := range keys {
			keys[key] = Hidden
		}
	}
	metadata, _ := secret.Object["metadata"].(map[string]any)
	switch annotations := metadata["annotations"].(type) {
	case nil:
	case map[string]any:
		delete(annotations, lastApplied)
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	default:
		delete(metadata, "annotations")
	}
	return secret, nil
}

// thenShare makes what a transform returns share its equal parts with others. What
// a transform is given shares nothing, for it may write to it.
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
