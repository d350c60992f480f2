package apiserver

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// setDefaults fills in what controllers expect to be there: the defaults of
// schemas, and of the built-in types those of pods, workloads and what goes with
// them. The real server has more.
func (e *endpoint) setDefaults(object runtime.Object) {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		if validation := e.definition.Schema; validation != nil && validation.OpenAPIV3Schema != nil {
			fill(o.Object, validation.OpenAPIV3Schema)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		completeDefinition(o)
	case *corev1.Namespace:
		defaultNamespace(o)
	case *corev1.Pod:
		defaultPod(o)
	case *corev1.Secret:
		mergeText(o)
		setIfEmpty(&o.Type, corev1.SecretTypeOpaque)
	case *corev1.Service:
		defaultService(&o.Spec)
	case *corev1.PersistentVolumeClaim:
		setIfEmpty(&o.Status.Phase, corev1.ClaimPending)
	case *corev1.PersistentVolume:
		setIfEmpty(&o.Status.Phase, corev1.VolumePending)
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *appsv1.ReplicaSet:
		setIfNil(&o.Spec.Replicas, 1)
		defaultTemplate(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		defaultStatefulSet(&o.Spec)
	case *appsv1.DaemonSet:
		defaultDaemonSet(&o.Spec)
	case *batchv1.Job:
		defaultJob(&o.Spec)
		defaultSelector(o)
	case *batchv1.CronJob:
		defaultCronJob(&o.Spec)
	}
}

func defaultNamespace(namespace *corev1.Namespace) {
	if namespace.DeletionTimestamp != nil {
		return
	}
	if namespace.Spec.Finalizers == nil {
		namespace.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	}
	setIfEmpty(&namespace.Status.Phase, corev1.NamespaceActive)
	if namespace.Labels == nil {
		namespace.Labels = map[string]string{}
	}
	if namespace.Name != "" {
		namespace.Labels[corev1.LabelMetadataName] = namespace.Name
	}
}

// mergeText takes what was written as text into the data: it can be written, and
// is never read back.
func mergeText(secret *corev1.Secret) {
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for name, text := range secret.StringData {
		secret.Data[name] = []byte(text)
	}
	secret.StringData = nil
}

func setIfEmpty[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func setIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}
