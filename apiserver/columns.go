package apiserver

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var docs = metav1.ObjectMeta{}.SwaggerDoc()

var (
	nameColumn = column{
		metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		func(object runtime.Object) any { return accessor(object).GetName() },
	}
	ageColumn = column{
		metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: docs["creationTimestamp"]},
		func(object runtime.Object) any { return age(accessor(object).GetCreationTimestamp()) },
	}
)

// accessor is for objects that have been accepted and so have metadata.
func accessor(object runtime.Object) metav1.Object {
	found, err := meta.Accessor(object)
	if err != nil {
		return &metav1.ObjectMeta{}
	}
	return found
}

// show makes a column of a function of one type.
func show[T runtime.Object](name string, cell func(T) any) column { return detail(name, 0, cell) }

// wide makes a column that is only seen with -o wide.
func wide[T runtime.Object](name string, cell func(T) any) column { return detail(name, 1, cell) }

func detail[T runtime.Object](name string, priority int32, cell func(T) any) column {
	return column{
		metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority},
		func(object runtime.Object) any {
			if typed, ok := object.(T); ok {
				return cell(typed)
			}
			return nil
		},
	}
}

func kindOf(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }

// builtinColumns follow the name.
var builtinColumns = map[schema.GroupKind][]column{
	kindOf("", "Pod"): {
		show("Ready", readyContainers), show("Status", podStatus), show("Restarts", podRestarts), ageColumn,
		wide("IP", func(o *corev1.Pod) any { return orNone(o.Status.PodIP) }),
		wide("Node", func(o *corev1.Pod) any { return orNone(o.Spec.NodeName) }),
		wide("Nominated Node", func(o *corev1.Pod) any { return orNone(o.Status.NominatedNodeName) }),
		wide("Readiness Gates", func(o *corev1.Pod) any { return "<none>" }),
	},
	kindOf("", "Node"): {
		show("Status", nodeStatus), show("Roles", nodeRoles), ageColumn,
		show("Version", func(o *corev1.Node) any { return o.Status.NodeInfo.KubeletVersion }),
	},
	kindOf("", "Namespace"): {show("Status", func(o *corev1.Namespace) any { return string(o.Status.Phase) }), ageColumn},
	kindOf("", "ConfigMap"): {
		column{
			metav1.TableColumnDefinition{Name: "Data", Type: "string", Description: corev1.ConfigMap{}.SwaggerDoc()["data"]},
			func(object runtime.Object) any {
				o := object.(*corev1.ConfigMap)
				return len(o.Data) + len(o.BinaryData)
			},
		}, ageColumn,
	},
	kindOf("", "Secret"): {
		show("Type", func(o *corev1.Secret) any { return string(o.Type) }),
		show("Data", func(o *corev1.Secret) any { return len(o.Data) }), ageColumn,
	},
	kindOf("", "Service"): {
		show("Type", func(o *corev1.Service) any { return string(o.Spec.Type) }),
		show("Cluster-IP", func(o *corev1.Service) any { return orNone(o.Spec.ClusterIP) }),
		show("External-IP", func(o *corev1.Service) any { return orNone(strings.Join(o.Spec.ExternalIPs, ",")) }),
		show("Port(s)", servicePorts), ageColumn,
	},
	kindOf("", "Event"): {
		show("Last Seen", func(o *corev1.Event) any { return age(lastSeen(o)) }),
		show("Type", func(o *corev1.Event) any { return o.Type }), show("Reason", func(o *corev1.Event) any { return o.Reason }),
		show("Object", func(o *corev1.Event) any {
			return strings.ToLower(o.InvolvedObject.Kind) + "/" + o.InvolvedObject.Name
		}),
		show("Message", func(o *corev1.Event) any { return strings.TrimSpace(o.Message) }),
	},
	kindOf("", "PersistentVolumeClaim"): {
		show("Status", func(o *corev1.PersistentVolumeClaim) any { return string(o.Status.Phase) }),
		show("Volume", func(o *corev1.PersistentVolumeClaim) any { return o.Spec.VolumeName }),
		show("Capacity", func(o *corev1.PersistentVolumeClaim) any { return o.Status.Capacity.Storage().String() }), ageColumn,
	},
	kindOf("", "ReplicationController"): {
		show("Desired", func(o *corev1.ReplicationController) any { return ptr.Deref(o.Spec.Replicas, 1) }),
		show("Current", func(o *corev1.ReplicationController) any { return o.Status.Replicas }),
		show("Ready", func(o *corev1.ReplicationController) any { return o.Status.ReadyReplicas }), ageColumn,
	},
	kindOf("apps", "Deployment"): {
		show("Ready", func(o *appsv1.Deployment) any {
			return fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 1))
		}),
		show("Up-to-date", func(o *appsv1.Deployment) any { return o.Status.UpdatedReplicas }),
		show("Available", func(o *appsv1.Deployment) any { return o.Status.AvailableReplicas }), ageColumn,
	},
	kindOf("apps", "ReplicaSet"): {
		show("Desired", func(o *appsv1.ReplicaSet) any { return ptr.Deref(o.Spec.Replicas, 1) }),
		show("Current", func(o *appsv1.ReplicaSet) any { return o.Status.Replicas }),
		show("Ready", func(o *appsv1.ReplicaSet) any { return o.Status.ReadyReplicas }), ageColumn,
	},
	kindOf("apps", "StatefulSet"): {
		show("Ready", func(o *appsv1.StatefulSet) any {
			return fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 1))
		}), ageColumn,
	},
	kindOf("apps", "DaemonSet"): {
		show("Desired", func(o *appsv1.DaemonSet) any { return o.Status.DesiredNumberScheduled }),
		show("Current", func(o *appsv1.DaemonSet) any { return o.Status.CurrentNumberScheduled }),
		show("Ready", func(o *appsv1.DaemonSet) any { return o.Status.NumberReady }),
		show("Up-to-date", func(o *appsv1.DaemonSet) any { return o.Status.UpdatedNumberScheduled }),
		show("Available", func(o *appsv1.DaemonSet) any { return o.Status.NumberAvailable }), ageColumn,
	},
	kindOf("batch", "Job"): {
		show("Status", jobStatus),
		show("Completions", func(o *batchv1.Job) any {
			return fmt.Sprintf("%d/%d", o.Status.Succeeded, ptr.Deref(o.Spec.Completions, 1))
		}), show("Duration", jobDuration), ageColumn,
	},
	kindOf("batch", "CronJob"): {
		show("Schedule", func(o *batchv1.CronJob) any { return o.Spec.Schedule }),
		show("Timezone", func(o *batchv1.CronJob) any { return orNone(ptr.Deref(o.Spec.TimeZone, "")) }),
		show("Suspend", func(o *batchv1.CronJob) any { return yesNo(ptr.Deref(o.Spec.Suspend, false)) }),
		show("Active", func(o *batchv1.CronJob) any { return len(o.Status.Active) }),
		show("Last Schedule", func(o *batchv1.CronJob) any {
			if o.Status.LastScheduleTime == nil {
				return "<none>"
			}
			return age(*o.Status.LastScheduleTime)
		}), ageColumn,
	},
	kindOf("networking.k8s.io", "Ingress"): {
		show("Class", func(o *networkingv1.Ingress) any { return orNone(ptr.Deref(o.Spec.IngressClassName, "")) }),
		show("Hosts", ingressHosts), show("Address", ingressAddresses), show("Ports", ingressPorts), ageColumn,
	},
	kindOf("autoscaling", "HorizontalPodAutoscaler"): {
		show("Reference", func(o *autoscalingv2.HorizontalPodAutoscaler) any {
			return o.Spec.ScaleTargetRef.Kind + "/" + o.Spec.ScaleTargetRef.Name
		}),
		show("Targets", autoscalerTargets),
		show("MinPods", func(o *autoscalingv2.HorizontalPodAutoscaler) any {
			if o.Spec.MinReplicas == nil {
				return "<unset>"
			}
			return fmt.Sprint(*o.Spec.MinReplicas)
		}),
		show("MaxPods", func(o *autoscalingv2.HorizontalPodAutoscaler) any { return o.Spec.MaxReplicas }),
		show("Replicas", func(o *autoscalingv2.HorizontalPodAutoscaler) any { return o.Status.CurrentReplicas }), ageColumn,
	},
	kindOf("policy", "PodDisruptionBudget"): {
		show("Min Available", func(o *policyv1.PodDisruptionBudget) any { return orNotApplicable(o.Spec.MinAvailable) }),
		show("Max Unavailable", func(o *policyv1.PodDisruptionBudget) any { return orNotApplicable(o.Spec.MaxUnavailable) }),
		show("Allowed Disruptions", func(o *policyv1.PodDisruptionBudget) any { return o.Status.DisruptionsAllowed }), ageColumn,
	},
	kindOf("discovery.k8s.io", "EndpointSlice"): {
		show("AddressType", func(o *discoveryv1.EndpointSlice) any { return string(o.AddressType) }),
		show("Ports", slicePorts), show("Endpoints", sliceEndpoints), ageColumn,
	},
	kindOf("coordination.k8s.io", "Lease"): {
		show("Holder", func(o *coordinationv1.Lease) any { return ptr.Deref(o.Spec.HolderIdentity, "") }), ageColumn,
	},
	kindOf("apiextensions.k8s.io", "CustomResourceDefinition"): {
		show("Created At", func(o *apiextensionsv1.CustomResourceDefinition) any {
			return o.CreationTimestamp.UTC().Format(time.RFC3339)
		}),
	},
}
