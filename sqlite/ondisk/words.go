package ondisk

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tokenVolume begins the name of the volume that the server adds to each pod, and
// mounts in each of its containers; the rest is random.
const tokenVolume = "kube-api-access-"

// specWords returns the words in which the spec of an object differs from those of its
// siblings: pods of one template differ only in their node, the volume of their token and,
// in a StatefulSet, their name.
func specWords(o metav1.Object) []string {
	node, volume := "", ""
	switch o := o.(type) {
	case *corev1.Pod:
		node = o.Spec.NodeName
		for i := range o.Spec.Volumes {
			if name := o.Spec.Volumes[i].Name; strings.HasPrefix(name, tokenVolume) {
				volume = name
			}
		}
	case *unstructured.Unstructured:
		spec, _ := o.Object["spec"].(map[string]any)
		node, _ = spec["nodeName"].(string)
		volumes, _ := spec["volumes"].([]any)
		for _, v := range volumes {
			v, _ := v.(map[string]any)
			if name, _ := v["name"].(string); strings.HasPrefix(name, tokenVolume) {
				volume = name
			}
		}
	}
	return []string{node, volume, o.GetName()}
}
