package json

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// A quantity that is not in canonical form caches its text at the first String.
// Objects that shared one would race although nobody changes anything.
func TestJSONQuantitiesArePrivate(t *testing.T) {
	decoder := newJSON(t, podType, pool.Options{Pool: pool.New()})
	var pods []*corev1.Pod
	for _, uid := range []string{"a", "b", "c", "d"} {
		object, err := decoder.Decode([]byte(`{"metadata":{"uid":"` + uid + `"},"spec":{
			"volumes":[{"name":"scratch","emptyDir":{"sizeLimit":"1.5Gi"}}],
			"tolerations":[{"key":"a toleration that all have"}],
			"containers":[{"name":"main","resources":{"limits":{"memory":"1Gi"}}}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, object.(*corev1.Pod))
	}
	wiretest.WantPrivateQuantities(t, pods)
}
