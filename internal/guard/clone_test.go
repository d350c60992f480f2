package guard

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A caller that gave an object may change its own copy: a test that sends an object,
// changes it, and sends it again has written to nothing in a cache.
func TestGiversMayChangeTheirObjects(t *testing.T) {
	s := session(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "web"}},
		Data:       map[string][]byte{"key": []byte("value")},
	}
	gotSecret := frozen(t, s, "shop/a", secret)
	secret.Labels["app"], secret.Data["key"][0] = "db", 'V'

	p := pod("web")
	gotPod := frozen(t, s, "shop/web", p)
	p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")

	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "spec": map[string]any{"args": []any{"a", int64(7), nil, map[string]any{"b": true}}}}}
	want := u.DeepCopy()
	gotU := frozen(t, s, "shop/u", u)
	u.Object["spec"].(map[string]any)["args"].([]any)[3].(map[string]any)["b"] = false

	if err := s.Check(); err != nil {
		t.Errorf("a change of the giver's own object was reported: %v", err)
	}
	if gotSecret.Labels["app"] != "web" || string(gotSecret.Data["key"]) != "value" {
		t.Errorf("the secret changed with the giver's: %v %s", gotSecret.Labels, gotSecret.Data)
	}
	if cpu := gotPod.Spec.Containers[0].Resources.Requests["cpu"]; cpu.String() != "100m" {
		t.Errorf("the pod changed with the giver's: %v", cpu)
	}
	if !reflect.DeepEqual(gotU, want) {
		t.Errorf("the unstructured object changed with the giver's: %v", gotU)
	}
	gotU.Object["spec"].(map[string]any)["args"].([]any)[3].(map[string]any)["b"] = false
	if s.Check() == nil {
		t.Error("a write to the frozen object was not found")
	}
}
