package apiserver

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object from another server is kept byte by byte. Another version changes nothing
// else, fields that are not known here included.
func TestObjectOfBytes(t *testing.T) {
	pods, ok := BuiltinResource(corev1.SchemeGroupVersion.WithResource("pods"))
	if !ok {
		t.Fatal("pods are not known")
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", ResourceVersion: "99", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Spec:       corev1.PodSpec{NodeName: "node"},
	}
	raw := must[[]byte](t)(pod.Marshal())
	unknown := appendField(nil, 900, "of a later release")
	e := must[*Object](t)(pods.NewObject(append(bytes.Clone(raw), unknown...)))
	if e.Key() != "n/p" || e.UID() != "u" || e.Version() != 99 || e.Labels()["a"] != "b" || e.Get("spec.nodeName") != "node" {
		t.Errorf("%q %q %d %v %q", e.Key(), e.UID(), e.Version(), e.Labels(), e.Get("spec.nodeName"))
	}
	later := must[*Object](t)(e.withVersion(100000))
	pod.ResourceVersion = "100000"
	if want := append(must[[]byte](t)(pod.Marshal()), unknown...); !bytes.Equal(later.Bytes(), want) || later.Version() != 100000 {
		t.Errorf("%d: %q, want %q", later.Version(), later.Bytes(), want)
	}
	for n := range raw {
		_, _ = replaceVersion(raw[:n], "1") // must not panic
	}
	for _, bad := range []corev1.Pod{{}, {ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "x"}}} {
		if _, err := pods.NewObject(must[[]byte](t)(bad.Marshal())); err == nil {
			t.Errorf("%v was taken", bad.ObjectMeta)
		}
	}
}
