package shape_test

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

func pod() *corev1.Pod {
	grace := int64(30)
	p := &corev1.Pod{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		NodeName:                      "node",
		Tolerations:                   []corev1.Toleration{{Key: "a"}, {Key: "b"}},
		Containers:                    []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "A"}}}},
	}}
	p.Name, p.Labels = "a", map[string]string{"app": "web"}
	return p
}

// Search finds memory wherever an object has it, and says in which field.
func TestSearch(t *testing.T) {
	p := pod()
	tree := map[string]any{"spec": map[string]any{"list": []any{map[string]any{"a": "b"}}}}
	inner := tree["spec"].(map[string]any)["list"].([]any)[0]
	for _, test := range []struct {
		object any
		memory unsafe.Pointer
		field  string
	}{
		{p, unsafe.Pointer(p), ""},
		{p, unsafe.Pointer(&p.Spec.Tolerations[0]), "spec.tolerations"},
		{p, unsafe.Pointer(&p.Spec.Containers[0].Env[0]), "spec.containers.env"},
		{p, unsafe.Pointer(p.Spec.TerminationGracePeriodSeconds), "spec.terminationGracePeriodSeconds"},
		{p, reflect.ValueOf(p.Labels).UnsafePointer(), "metadata.labels"},
		{&unstructured.Unstructured{Object: tree}, reflect.ValueOf(inner).UnsafePointer(), "spec.list"},
		{tree, reflect.ValueOf(inner).UnsafePointer(), "spec.list"},
	} {
		s := shape.Search{Memory: map[unsafe.Pointer]bool{test.memory: true}}
		if field, ok := s.Find(test.object); !ok || field != test.field {
			t.Errorf("found %v in %q, want it in %q", ok, field, test.field)
		}
		if field, ok := s.Find(pod()); ok {
			t.Errorf("%q of another pod has the memory", field)
		}
	}
	s := shape.Search{Memory: map[unsafe.Pointer]bool{unsafe.Pointer(p): true}}
	for _, object := range []any{nil, 7, "text", corev1.Pod{}} {
		if _, ok := s.Find(object); ok {
			t.Errorf("%v has the memory", object)
		}
	}
}

// Differences are distinguished by the memory that they are in.
func TestDifferences(t *testing.T) {
	a, b := pod(), pod()
	if found := shape.Differences("", reflect.ValueOf(a), reflect.ValueOf(b)); len(found) > 0 {
		t.Errorf("equal pods differ: %v", found)
	}
	a.Spec.NodeName, a.Name = "other", "other" // one difference: both lie in the object
	a.Spec.Tolerations[1].Key = "other"
	a.Labels["app"] = "other"
	*a.Spec.TerminationGracePeriodSeconds = 7
	var fields []string
	memory := map[unsafe.Pointer]bool{}
	for _, d := range shape.Differences("", reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()) {
		fields = append(fields, d.Field)
		memory[d.Memory] = true
	}
	slices.Sort(fields)
	if want := []string{"metadata.labels", "metadata.name", "spec.terminationGracePeriodSeconds", "spec.tolerations.key"}; !slices.Equal(fields, want) {
		t.Errorf("differences in %q, want %q", fields, want)
	}
	for _, want := range []unsafe.Pointer{nil, unsafe.Pointer(&a.Spec.Tolerations[0]), unsafe.Pointer(a.Spec.TerminationGracePeriodSeconds)} {
		if !memory[want] {
			t.Errorf("memory %v is not among %v", want, memory)
		}
	}
	// A quantity is the same after String was called.
	x, y := resource.MustParse("1.5Gi"), resource.MustParse("1.5Gi")
	_ = x.String()
	if !shape.SameValue(x, y) || shape.SameValue(x, resource.MustParse("2Gi")) {
		t.Error("quantities are not compared by their value")
	}
}

func TestContains(t *testing.T) {
	for of, want := range map[reflect.Type]bool{
		reflect.TypeFor[resource.Quantity]():           true,
		reflect.TypeFor[corev1.EmptyDirVolumeSource](): true,
		reflect.TypeFor[[]corev1.Volume]():             true,
		reflect.TypeFor[corev1.ResourceList]():         false, // nobody can write to the values of a map
		reflect.TypeFor[corev1.Toleration]():           false,
		reflect.TypeFor[map[string]corev1.Volume]():    true,
	} {
		if got := shape.Contains(of, shape.QuantityType, map[reflect.Type]bool{}); got != want {
			t.Errorf("%v: %v, want %v", of, got, want)
		}
	}
}

// Every kind of reference leads to its part; other values lead to none.
func TestRefTo(t *testing.T) {
	for of, kind := range map[reflect.Type]shape.RefKind{
		reflect.TypeFor[*corev1.Probe]():     shape.Pointer,
		reflect.TypeFor[[]corev1.Volume]():   shape.Slice,
		reflect.TypeFor[map[string]string](): shape.Map,
		shape.UntypedMapType:                 shape.TreeMap,
		shape.UntypedListType:                shape.TreeList,
	} {
		if r := shape.RefTo(of); r == nil || r.Kind != kind || r.Type != of || r != shape.RefTo(of) {
			t.Errorf("%v: %+v, want kind %d, and the same one each time", of, r, kind)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[corev1.Pod]()} {
		if r := shape.RefTo(of); r != nil {
			t.Errorf("%v: %+v", of, r)
		}
	}
}
