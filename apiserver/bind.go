package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// bindings reads the bodies of bindings. There is no such collection: a binding is
// a subresource of a pod that only a scheduler writes.
var bindings = &endpoint{resource: &resource{plural: "bindings", kind: "Binding"}, version: "v1"}

// binds says that what the endpoint has can be bound to a node.
func (e *endpoint) binds() bool { return e.group == "" && e.plural == "pods" }

// bind gives a pod to a node, once.
func (s *Server) bind(r *request) error {
	body := &request{Request: r.Request, endpoint: bindings, w: r.w}
	object, err := body.readObject(metav1.FieldValidationWarn)
	if err != nil {
		return err
	}
	binding := object.(*corev1.Binding)
	if binding.Name != r.name {
		return apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if problem := checkTarget(binding.Target); problem != nil {
		return internal(problem) // as the real server has it
	}
	if _, err := s.change(r, writeMode{whole: true, uncounted: true}, func(current runtime.Object) (runtime.Object, error) {
		pod := current.(*corev1.Pod)
		return pod, bindPod(pod, binding)
	}); err != nil {
		return err
	}
	sendStatus(r.w, r.Request, r.answer.media, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess, Code: http.StatusCreated,
	})
	return nil
}

func checkTarget(target corev1.ObjectReference) *field.Error {
	path := field.NewPath("target")
	switch {
	case target.Kind != "" && target.Kind != "Node":
		return field.NotSupported(path.Child("kind"), target.Kind, []string{"Node", "<empty>"})
	case target.Name == "":
		return field.Required(path.Child("name"), "")
	}
	return nil
}

// bindPod changes a pod as a binding says, which may bring labels and
// annotations with it.
func bindPod(pod *corev1.Pod, binding *corev1.Binding) error {
	where := schema.GroupResource{Resource: "pods/binding"}
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		return apierrors.NewConflict(where, pod.Name, fmt.Errorf("the uid of the binding (%s) is not that of the pod (%s)", binding.UID, pod.UID))
	case pod.DeletionTimestamp != nil:
		return apierrors.NewConflict(where, pod.Name, fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name))
	case pod.Spec.NodeName != "":
		return apierrors.NewConflict(where, pod.Name, fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	}
	pod.Spec.NodeName = binding.Target.Name
	mergeInto(&pod.Annotations, binding.Annotations)
	mergeInto(&pod.Labels, binding.Labels)
	// In the place of what a scheduler may have said before.
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now().Rfc3339Copy(),
	})
	return nil
}

func mergeInto(into *map[string]string, more map[string]string) {
	if *into == nil && len(more) > 0 {
		*into = map[string]string{}
	}
	maps.Copy(*into, more)
}
