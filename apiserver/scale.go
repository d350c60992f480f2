package apiserver

import (
	"fmt"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scales reads and describes scales. There is no such collection: a scale is a form
// of any object with replicas, the same for all kinds, so that a client that scales
// need not know them.
var scales = &endpoint{resource: &resource{group: autoscalingv1.GroupName, plural: "scales", kind: "Scale"}, version: "v1"}

// scalable says that what the endpoint has can be seen as a scale.
func (e *endpoint) scalable() bool {
	if e.custom {
		return e.definition.Subresources != nil && e.definition.Subresources.Scale != nil
	}
	switch e.group + "/" + e.plural {
	case "/replicationcontrollers", "apps/deployments", "apps/replicasets", "apps/statefulsets":
		return true
	}
	return false
}

// suitsScale are the answers in which a scale can be sent.
func (e *endpoint) suitsScale(a answer) bool { return e.suits(a) && a.shape != partial }

func (s *Server) getScale(r *request) error {
	found := s.state.find(r.content, r.key())
	if found == nil {
		return apierrors.NewNotFound(r.groupResource(), r.name)
	}
	return r.sendScale(found)
}

// updateScale takes a whole scale; only the replicas count.
func (s *Server) updateScale(r *request) error {
	options, err := r.updateOptions()
	if err != nil {
		return err
	}
	body := &request{Request: r.Request, endpoint: scales, w: r.w}
	object, err := body.readObject(strictness(options.FieldValidation))
	if err != nil {
		return err
	}
	return s.rescale(r, writeMode{dry: len(options.DryRun) > 0}, func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		return object.(*autoscalingv1.Scale), nil
	})
}

func (s *Server) patchScale(r *request) error {
	view := &request{Request: r.Request, target: r.target, endpoint: scales, w: r.w}
	p, err := view.readPatch(r.custom)
	if err != nil {
		return err
	}
	return s.rescale(r, p.writeMode(), func(current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		object, err := view.patched(current, p)
		if err != nil {
			return nil, err
		}
		return object.(*autoscalingv1.Scale), nil
	})
}

// rescale gives an object the replicas of the scale that follows on its own.
func (s *Server) rescale(r *request, how writeMode, next func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error)) error {
	changed, err := s.change(r, how, func(current runtime.Object) (runtime.Object, error) {
		before, err := r.scaleOf(current)
		if err != nil {
			return nil, err
		}
		scale, err := next(before)
		if err != nil {
			return nil, err
		}
		if err := r.checkName(scale); err != nil {
			return nil, err
		}
		if problems := apivalidation.ValidateNonnegativeField(int64(scale.Spec.Replicas), field.NewPath("spec", "replicas")); len(problems) > 0 {
			return nil, apierrors.NewInvalid(scales.groupKind(), r.name, problems)
		}
		// Whose scale it was, and when, is for the object to agree with.
		accessor(current).SetResourceVersion(scale.ResourceVersion)
		if scale.ResourceVersion == "" {
			accessor(current).SetResourceVersion(before.ResourceVersion)
		}
		if scale.UID != "" {
			accessor(current).SetUID(scale.UID)
		}
		return current, r.setReplicas(current, scale.Spec.Replicas)
	})
	if err != nil {
		return err
	}
	return r.sendScale(changed)
}

func (r *request) sendScale(e *Object) error {
	object, err := e.object()
	if err != nil {
		return err
	}
	if object, err = r.fromStored(object); err != nil {
		return err
	}
	scale, err := r.scaleOf(object)
	if err != nil {
		return err
	}
	if r.answer.shape == table {
		return r.sendScaleTable(scale)
	}
	data, err := encodeJSON(scale)
	if r.answer.media == asProtobuf {
		data, err = scale.Marshal()
	}
	if err != nil {
		return err
	}
	r.send(http.StatusOK, scales.gvk(), data)
	return nil
}

// scaleColumns follow the name.
var scaleColumns = []column{
	nameColumn,
	show("Desired", func(o *autoscalingv1.Scale) any { return o.Spec.Replicas }),
	show("Available", func(o *autoscalingv1.Scale) any { return o.Status.Replicas }), ageColumn,
}

func (r *request) sendScaleTable(scale *autoscalingv1.Scale) error {
	row := metav1.TableRow{}
	t := &metav1.Table{ListMeta: metav1.ListMeta{ResourceVersion: scale.ResourceVersion}}
	t.SetGroupVersionKind(tableKind.GroupKind().WithVersion(r.answer.shapeVersion))
	for _, c := range scaleColumns {
		t.ColumnDefinitions = append(t.ColumnDefinitions, c.TableColumnDefinition)
		row.Cells = append(row.Cells, c.cell(scale))
	}
	var err error
	if row.Object, err = (&request{Request: r.Request, endpoint: scales}).rowObject(scale); err != nil {
		return err
	}
	t.Rows = []metav1.TableRow{row}
	data, err := encodeJSON(t)
	if err != nil {
		return err
	}
	r.send(http.StatusOK, tableKind, data)
	return nil
}

// scaleOf is the view of an object as a scale.
func (e *endpoint) scaleOf(object runtime.Object) (*autoscalingv1.Scale, error) {
	metadata := accessor(object)
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: metadata.GetName(), Namespace: metadata.GetNamespace(), UID: metadata.GetUID(),
		ResourceVersion: metadata.GetResourceVersion(), CreationTimestamp: metadata.GetCreationTimestamp(),
	}}
	scale.SetGroupVersionKind(scales.gvk())
	var wanted *int32
	var selector *metav1.LabelSelector
	switch o := object.(type) {
	case *appsv1.Deployment:
		wanted, scale.Status.Replicas, selector = o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *appsv1.ReplicaSet:
		wanted, scale.Status.Replicas, selector = o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *appsv1.StatefulSet:
		wanted, scale.Status.Replicas, selector = o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *corev1.ReplicationController:
		wanted, scale.Status.Replicas = o.Spec.Replicas, o.Status.Replicas
		scale.Status.Selector = labels.Set(o.Spec.Selector).String()
	case *unstructured.Unstructured:
		return scale, e.customScale(scale, o)
	}
	if wanted != nil {
		scale.Spec.Replicas = *wanted
	}
	if selector != nil {
		made, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			return nil, internal(err)
		}
		scale.Status.Selector = made.String()
	}
	return scale, nil
}

// customScale finds the figures where the definition says that they are.
func (e *endpoint) customScale(scale *autoscalingv1.Scale, object *unstructured.Unstructured) error {
	paths := e.definition.Subresources.Scale
	wanted, found, err := unstructured.NestedInt64(object.Object, steps(paths.SpecReplicasPath)...)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !found {
		return apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", paths.SpecReplicasPath))
	}
	actual, _, err := unstructured.NestedInt64(object.Object, steps(paths.StatusReplicasPath)...)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	scale.Spec.Replicas, scale.Status.Replicas = int32(wanted), int32(actual)
	if paths.LabelSelectorPath != nil {
		scale.Status.Selector, _, err = unstructured.NestedString(object.Object, steps(*paths.LabelSelectorPath)...)
	}
	return err
}

func (e *endpoint) setReplicas(object runtime.Object, replicas int32) error {
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Spec.Replicas = &replicas
	case *appsv1.ReplicaSet:
		o.Spec.Replicas = &replicas
	case *appsv1.StatefulSet:
		o.Spec.Replicas = &replicas
	case *corev1.ReplicationController:
		o.Spec.Replicas = &replicas
	case *unstructured.Unstructured:
		return unstructured.SetNestedField(o.Object, int64(replicas), steps(e.definition.Subresources.Scale.SpecReplicasPath)...)
	}
	return nil
}

// steps are those of a path as definitions have them: .spec.replicas.
func steps(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
