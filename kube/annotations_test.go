package kube

import (
	"maps"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotations are removed from a copy. The input does not change, and is returned
// if there is nothing to remove.
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
		got, plainGot := StripAnnotations(typed, "x", "y"), StripAnnotations(plain, "x", "y")
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
	if got := StripAnnotations[*corev1.Pod](nil, "x"); got != nil {
		t.Errorf("of nothing it makes %v", got)
	}
	if got := StripAnnotations("text", "x"); got != "text" {
		t.Errorf("of a text it makes %v", got)
	}
}

// Names under which public code keeps copies of applied objects, and some that only
// look like them.
func TestAppliedCopies(t *testing.T) {
	for name, want := range map[string]bool{
		"kubectl.kubernetes.io/last-applied-configuration":      true,
		"app.oam.dev/last-applied-configuration":                true,
		"pingcap.com/last-applied-configuration":                true,
		"hypershift.openshift.io/last-applied-configuration":    true,
		"codis.k8s.io/last-applied-config":                      true,
		"kustomization.kubestack.com/last-applied-config-gzip":  true,
		"operator.victoriametrics/last-applied-spec":            true,
		"virtualization.deckhouse.io/vm.last-applied-spec":      true,
		"banzaicloud.com/last-applied":                          true,
		"crdb.io/last-applied":                                  true,
		"operator.cdi.kubevirt.io/lastAppliedConfiguration":     true,
		"operator.kyma-project.io/lastAppliedConfiguration":     true,
		"kopf.zalando.org/last-handled-configuration":           true,
		"kapp.k14s.io/original":                                 true,
		"kapp.k14s.io/original-diff":                            true,
		"kapp.k14s.io/original-diff-full":                       true,
		"objectset.rio.cattle.io/applied":                       true,
		"configmanagement.gke.io/declared-config":               true,
		"kapp.k14s.io/identity":                                 false,
		"objectset.rio.cattle.io/id":                            false,
		"app.oam.dev/last-applied-time":                         false,
		"hypershift.openshift.io/last-applied-security-group-x": false,
		"example.com/applied":                                   false,
		"deployment.kubernetes.io/revision":                     false,
	} {
		if got := NamesAnnotation(AppliedCopies(), name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]bool{"a": true, "b": false, "xb": true, "cx": true, "c": true, "ac": false, "*": false, "": false} {
		if got := NamesAnnotation([]string{"a", "*xb", "c*"}, name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
