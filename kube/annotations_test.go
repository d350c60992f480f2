package kube

import (
	"maps"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotations are taken out of a copy; what is given is as it was, and is given
// back where there is nothing to take.
func TestWithoutAnnotations(t *testing.T) {
	for _, c := range []struct {
		have, want map[string]string
	}{
		{nil, nil},
		{map[string]string{"a": "1"}, map[string]string{"a": "1"}},
		{map[string]string{"a": "1", "x": "2", "y": "3"}, map[string]string{"a": "1"}},
		{map[string]string{"x": "2"}, nil},
	} {
		typed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: maps.Clone(c.have)}, Spec: corev1.PodSpec{NodeName: "n"}}
		plain := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{"nodeName": "n"}}}
		if c.have != nil {
			plain.SetAnnotations(c.have)
		}
		before, plainBefore := typed.DeepCopy(), plain.DeepCopy()
		got, plainGot := WithoutAnnotations(typed, "x", "y"), WithoutAnnotations(plain, "x", "y")
		if !reflect.DeepEqual(typed, before) || !reflect.DeepEqual(plain, plainBefore) {
			t.Errorf("%v: what was given was changed", c.have)
		}
		if !reflect.DeepEqual(got.Annotations, c.want) || got.Spec.NodeName != "n" || got.Name != "p" {
			t.Errorf("%v: typed it is %v", c.have, got)
		}
		if !reflect.DeepEqual(plainGot.GetAnnotations(), c.want) || plainGot.GetName() != "p" {
			t.Errorf("%v: unstructured it is %v", c.have, plainGot)
		}
		if unchanged := len(c.have) == len(c.want); (got == typed) != unchanged || (plainGot == plain) != unchanged {
			t.Errorf("%v: a copy was made of what needs none, or none of what does", c.have)
		}
	}
	if got := WithoutAnnotations[*corev1.Pod](nil, "x"); got != nil {
		t.Errorf("of nothing it makes %v", got)
	}
	if got := WithoutAnnotations("text", "x"); got != "text" {
		t.Errorf("of a text it makes %v", got)
	}
}
