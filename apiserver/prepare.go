package apiserver

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var metadataPath = field.NewPath("metadata")

// nameRule says how objects of a kind may be called.
func (e *endpoint) nameRule() apivalidation.ValidateNameFunc {
	switch e.group + "/" + e.plural {
	case "/namespaces":
		return apivalidation.ValidateNamespaceName
	case "/services":
		return apivalidation.NameIsDNS1035Label
	case "rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings",
		"rbac.authorization.k8s.io/clusterroles", "rbac.authorization.k8s.io/clusterrolebindings",
		"certificates.k8s.io/clustertrustbundles", "networking.k8s.io/ipaddresses":
		return pathSegment
	}
	return apivalidation.NameIsDNSSubdomain
}

// pathSegment accepts every name that fits into a path.
func pathSegment(name string, prefix bool) (problems []string) {
	if !prefix && (name == "." || name == "..") {
		problems = append(problems, fmt.Sprintf("may not be '%s'", name))
	}
	for _, character := range []string{"/", "%"} {
		if strings.Contains(name, character) {
			problems = append(problems, fmt.Sprintf("may not contain '%s'", character))
		}
	}
	return problems
}

// validate looks at the metadata, and at custom resources by their schema.
func (e *endpoint) validate(object runtime.Object) error {
	metadata := accessor(object)
	problems := apivalidation.ValidateObjectMetaAccessor(metadata, e.namespaced, e.nameRule(), metadataPath)
	if !e.custom {
		problems = append(problems, checkFinalizers(metadata.GetFinalizers())...)
	}
	if custom, ok := object.(*unstructured.Unstructured); ok && e.definition.Schema != nil && e.definition.Schema.OpenAPIV3Schema != nil {
		problems = append(problems, check(nil, withoutMetadata(custom.Object), e.definition.Schema.OpenAPIV3Schema)...)
	}
	if definition, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
		problems = append(problems, checkDefinition(definition)...)
	}
	return e.problems(metadata.GetName(), problems)
}

// checkFinalizers wants to know whose they are.
func checkFinalizers(finalizers []string) (problems field.ErrorList) {
	standard := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}
	for i, name := range finalizers {
		if !strings.Contains(name, "/") && !slices.Contains(standard, name) {
			problems = append(problems, field.Invalid(metadataPath.Child("finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return problems
}

func (e *endpoint) problems(name string, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(e.groupKind(), name, problems)
}

func withoutMetadata(object map[string]any) map[string]any {
	rest := make(map[string]any, len(object))
	for name, value := range object {
		if name != "metadata" {
			rest[name] = value
		}
	}
	return rest
}

// inherit gives the successor of an object what only the server may change: of
// the metadata what it keeps itself, and the part that the request is not about.
func (e *endpoint) inherit(old, object runtime.Object, sub string, how writeMode) {
	before, after := accessor(old), accessor(object)
	if sub == "status" {
		status, found := getStatus(object)
		if e.custom {
			metadata := accessor(old.DeepCopyObject())
			copyMetadata(metadata, after)
		}
		takeContent(object, old)
		setStatus(object, status, found)
	} else if e.status && !how.whole {
		status, found := getStatus(old)
		setStatus(object, status, found)
	}
	if namespace, ok := object.(*corev1.Namespace); ok && sub != "finalize" {
		namespace.Spec.Finalizers = old.(*corev1.Namespace).Spec.Finalizers
	}
	after.SetNamespace(before.GetNamespace())
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	after.SetDeletionGracePeriodSeconds(before.GetDeletionGracePeriodSeconds())
	after.SetSelfLink("")
	after.SetManagedFields(nil)
	after.SetGeneration(before.GetGeneration())
}

// count raises the generation if the spec is not what it was.
func (e *endpoint) count(old, object runtime.Object) {
	if !e.counts {
		return
	}
	same := object.DeepCopyObject()
	copyMetadata(accessor(old), accessor(same))
	if e.status {
		status, found := getStatus(old)
		setStatus(same, status, found)
	}
	if !apiequality.Semantic.DeepEqual(old, same) {
		accessor(object).SetGeneration(accessor(old).GetGeneration() + 1)
	}
}

func copyMetadata(from, to metav1.Object) {
	to.SetName(from.GetName())
	to.SetGenerateName(from.GetGenerateName())
	to.SetNamespace(from.GetNamespace())
	to.SetUID(from.GetUID())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetGeneration(from.GetGeneration())
	to.SetCreationTimestamp(from.GetCreationTimestamp())
	to.SetDeletionTimestamp(from.GetDeletionTimestamp())
	to.SetDeletionGracePeriodSeconds(from.GetDeletionGracePeriodSeconds())
	to.SetLabels(from.GetLabels())
	to.SetAnnotations(from.GetAnnotations())
	to.SetFinalizers(from.GetFinalizers())
	to.SetOwnerReferences(from.GetOwnerReferences())
}

// takeContent gives an object all that another one has, except for the metadata.
func takeContent(object, from runtime.Object) {
	if custom, ok := object.(*unstructured.Unstructured); ok {
		content := from.DeepCopyObject().(*unstructured.Unstructured).Object
		content["metadata"] = custom.Object["metadata"]
		custom.Object = content
		return
	}
	to, source := reflect.ValueOf(object).Elem(), reflect.ValueOf(from.DeepCopyObject()).Elem()
	for i := range to.NumField() {
		if name := to.Type().Field(i).Name; name != "ObjectMeta" && name != "TypeMeta" {
			to.Field(i).Set(source.Field(i))
		}
	}
}

// getStatus returns the status of an object, in the form that setStatus takes.
func getStatus(object runtime.Object) (any, bool) {
	if custom, ok := object.(*unstructured.Unstructured); ok {
		status, found := custom.Object["status"]
		return runtime.DeepCopyJSONValue(status), found
	}
	field := reflect.ValueOf(object.DeepCopyObject()).Elem().FieldByName("Status")
	if !field.IsValid() {
		return nil, false
	}
	return field.Interface(), true
}

func setStatus(object runtime.Object, status any, found bool) {
	if custom, ok := object.(*unstructured.Unstructured); ok {
		if found {
			custom.Object["status"] = status
		} else {
			delete(custom.Object, "status")
		}
		return
	}
	if field := reflect.ValueOf(object).Elem().FieldByName("Status"); field.IsValid() && found {
		field.Set(reflect.ValueOf(status))
	}
}

func clearStatus(object runtime.Object) {
	if _, ok := object.(*unstructured.Unstructured); ok {
		setStatus(object, nil, false)
		return
	}
	if field := reflect.ValueOf(object).Elem().FieldByName("Status"); field.IsValid() {
		field.SetZero()
	}
}
