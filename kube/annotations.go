package kube

import (
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// annotationPath is the field path of an annotation.
func annotationPath(name string) string { return "metadata.annotations['" + name + "']" }

// strippingAnnotations removes annotations before a transform, which may be nil.
func strippingAnnotations[T any](names []string, then func(T) (T, error)) func(T) (T, error) {
	if len(names) == 0 {
		return then
	}
	return func(object T) (T, error) {
		object = StripAnnotations(object, names...)
		if then == nil {
			return object, nil
		}
		return then(object)
	}
}

// StripAnnotations returns an object without these annotations; names may have wildcards,
// see [NamesAnnotation]. It returns the same object if it has none of them, else a copy
// that shares everything but the annotations with it, because other objects may have the
// same parts.
func StripAnnotations[T any](object T, names ...string) T {
	switch o := any(object).(type) {
	case *unstructured.Unstructured:
		if o == nil {
			return object
		}
		metadata, _ := o.Object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		left := without(annotations, names)
		if len(left) == len(annotations) {
			return object
		}
		metadata = maps.Clone(metadata)
		metadata["annotations"] = left
		if len(left) == 0 {
			delete(metadata, "annotations")
		}
		all := maps.Clone(o.Object)
		all["metadata"] = metadata
		return any(&unstructured.Unstructured{Object: all}).(T)
	case metav1.Object:
		v := reflect.ValueOf(o)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return object
		}
		annotations := o.GetAnnotations()
		left := without(annotations, names)
		if len(left) == len(annotations) {
			return object
		}
		copied := reflect.New(v.Type().Elem())
		copied.Elem().Set(v.Elem())
		if len(left) == 0 {
			left = nil
		}
		shown, ok := copied.Interface().(metav1.Object)
		if !ok {
			return object
		}
		shown.SetAnnotations(left)
		return copied.Interface().(T)
	}
	return object
}

// without returns a map without some keys: the same map if it has none of them.
func without[V any](m map[string]V, names []string) map[string]V {
	left := m
	for key := range m {
		if !NamesAnnotation(names, key) {
			continue
		}
		if len(left) == len(m) {
			left = maps.Clone(m)
		}
		delete(left, key)
	}
	return left
}

// NamesAnnotation says whether a list of names contains an annotation. A * at the
// beginning or at the end of a name stands for any text.
func NamesAnnotation(names []string, annotation string) bool {
	for _, name := range names {
		ending, any := strings.CutPrefix(name, "*")
		if any && strings.HasSuffix(annotation, ending) {
			return true
		}
		beginning, any := strings.CutSuffix(name, "*")
		if any && strings.HasPrefix(annotation, beginning) || name == annotation {
			return true
		}
	}
	return false
}

// AppliedCopies names the annotations in which tools keep a copy of the object that was
// applied, its secrets included:
//
//   - kubectl apply, KubeVela, TiDB's operator, HyperShift and others under names that
//     end in last-applied-configuration, last-applied-config or last-applied-spec,
//   - operators that use k8s-objectmatcher (banzaicloud.com and others) in last-applied,
//   - KubeVirt's and Kyma's operators in lastAppliedConfiguration,
//   - the Kustomization provider of Terraform in last-applied-config-gzip,
//   - operators that are written with kopf in last-handled-configuration,
//   - kapp in original and, for debugging, original-diff,
//   - Rancher, Fleet and k3s in objectset.rio.cattle.io/applied,
//   - Config Sync in declared-config.
//
// Helm, Argo CD and Flux keep no copy, or use kubectl's annotation.
func AppliedCopies() []string {
	return []string{
		"*last-applied-configuration", "*last-applied-config", "*last-applied-config-gzip", "*last-applied-spec",
		"*/last-applied", "*/lastAppliedConfiguration", "*/last-handled-configuration",
		"kapp.k14s.io/original", "kapp.k14s.io/original-diff*",
		"objectset.rio.cattle.io/applied", "configmanagement.gke.io/declared-config",
	}
}
