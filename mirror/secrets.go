package mirror

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/kube/ondisk"
	"github.com/tarnproject/tarn/kube/wire"
)

// Hidden stands for each value of a Secret that is not kept. It is no base64, so
// that nobody takes it for the value.
const Hidden = "(hidden)"

// HideValues takes the values out of a Secret, in place, and says whether there were
// any. Names of keys stay, since that is what people look for. What has a shape that
// no server sends is hidden as a whole.
func HideValues(secret Object) (hidden bool) {
	for _, field := range []string{"data", "stringData"} {
		switch values := secret.Object[field].(type) {
		case nil:
		case map[string]any:
			for key := range values {
				values[key] = Hidden
				hidden = true
			}
		default:
			secret.Object[field] = Hidden
			hidden = true
		}
	}
	metadata, _ := secret.Object["metadata"].(map[string]any)
	switch annotations := metadata["annotations"].(type) {
	case nil:
	case map[string]any:
		if _, ok := annotations[ondisk.LastApplied]; ok {
			annotations[ondisk.LastApplied] = Hidden
			hidden = true
		}
	default:
		delete(metadata, "annotations")
		hidden = true
	}
	return hidden
}

// hideSecret is HideValues as a transform.
func hideSecret(secret Object) (Object, error) {
	HideValues(secret)
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
