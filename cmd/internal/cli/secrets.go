package cli

import (
	"github.com/tarnproject/tarn/mirror"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lastApplied is the annotation in which kubectl repeats the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func isSecrets(r mirror.Resource) bool {
	return r.GVR.GroupResource() == schema.GroupResource{Resource: "secrets"}
}

// hideValues takes the values out of a Secret, and says whether there were any.
// What mirrors hide, they hide by themselves.
func hideValues(secret *unstructured.Unstructured) (hidden bool) {
	for _, field := range []string{"data", "stringData"} {
		switch values := secret.Object[field].(type) {
		case nil:
		case map[string]any:
			for key := range values {
				values[key] = mirror.Hidden
				hidden = true
			}
		default: // of no shape that a server sends
			secret.Object[field] = mirror.Hidden
			hidden = true
		}
	}
	metadata, _ := secret.Object["metadata"].(map[string]any)
	switch annotations := metadata["annotations"].(type) {
	case nil:
	case map[string]any:
		if _, ok := annotations[lastApplied]; ok {
			annotations[lastApplied] = mirror.Hidden
			hidden = true
		}
	default:
		metadata["annotations"] = mirror.Hidden
		hidden = true
	}
	return hidden
}
