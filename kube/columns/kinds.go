package columns

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()
	metadataType     = reflect.TypeFor[*metav1.PartialObjectMetadata]()
)

func core(resource string) schema.GroupResource { return schema.GroupResource{Resource: resource} }

func inGroup(group, resource string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: resource}
}

// kindColumns holds the fields that kubectl shows for the usual kinds, or that are often
// queried.
var kindColumns = map[schema.GroupResource][]column{
	core("pods"): {
		field("phase", "TEXT", "status.phase").index(),
		field("node", "TEXT", "spec.nodeName").index(),
		field("pod_ip", "TEXT", "status.podIP"),
		field("host_ip", "TEXT", "status.hostIP"),
		field("qos_class", "TEXT", "status.qosClass"),
		field("service_account", "TEXT", "spec.serviceAccountName"),
		field("priority", "INTEGER", "spec.priority"),
	},
	core("nodes"): {
		field("unschedulable", "INTEGER", "spec.unschedulable"),
		field("kubelet_version", "TEXT", "status.nodeInfo.kubeletVersion"),
		field("os_image", "TEXT", "status.nodeInfo.osImage"),
		field("kernel_version", "TEXT", "status.nodeInfo.kernelVersion"),
		field("container_runtime", "TEXT", "status.nodeInfo.containerRuntimeVersion"),
		field("provider_id", "TEXT", "spec.providerID"),
	},
	core("namespaces"): {field("phase", "TEXT", "status.phase")},
	core("services"): {
		field("type", "TEXT", "spec.type"),
		field("cluster_ip", "TEXT", "spec.clusterIP"),
		field("external_name", "TEXT", "spec.externalName"),
	},
	core("persistentvolumeclaims"): {
		field("phase", "TEXT", "status.phase"),
		field("volume", "TEXT", "spec.volumeName").index(),
		field("storage_class", "TEXT", "spec.storageClassName"),
	},
	core("persistentvolumes"): {
		field("phase", "TEXT", "status.phase"),
		field("claim_namespace", "TEXT", "spec.claimRef.namespace"),
		field("claim_name", "TEXT", "spec.claimRef.name"),
		field("reclaim_policy", "TEXT", "spec.persistentVolumeReclaimPolicy"),
		field("storage_class", "TEXT", "spec.storageClassName"),
	},
	core("events"): {
		field("type", "TEXT", "type"),
		field("reason", "TEXT", "reason").index(),
		field("message", "TEXT", "message"),
		field("count", "INTEGER", "count"),
		field("object_kind", "TEXT", "involvedObject.kind"),
		field("object_name", "TEXT", "involvedObject.name"),
		field("object_uid", "TEXT", "involvedObject.uid").index(),
	},
	inGroup("apps", "deployments"): {
		field("replicas", "INTEGER", "spec.replicas"),
		field("ready_replicas", "INTEGER", "status.readyReplicas"),
		field("updated_replicas", "INTEGER", "status.updatedReplicas"),
		field("available_replicas", "INTEGER", "status.availableReplicas"),
	},
	inGroup("apps", "replicasets"): {
		field("replicas", "INTEGER", "spec.replicas"),
		field("current_replicas", "INTEGER", "status.replicas"),
		field("ready_replicas", "INTEGER", "status.readyReplicas"),
	},
	inGroup("apps", "statefulsets"): {
		field("replicas", "INTEGER", "spec.replicas"),
		field("ready_replicas", "INTEGER", "status.readyReplicas"),
		field("service", "TEXT", "spec.serviceName"),
	},
	inGroup("apps", "daemonsets"): {
		field("desired", "INTEGER", "status.desiredNumberScheduled"),
		field("current", "INTEGER", "status.currentNumberScheduled"),
		field("ready", "INTEGER", "status.numberReady"),
		field("available", "INTEGER", "status.numberAvailable"),
	},
	inGroup("batch", "jobs"): {
		field("completions", "INTEGER", "spec.completions"),
		field("active", "INTEGER", "status.active"),
		field("succeeded", "INTEGER", "status.succeeded"),
		field("failed", "INTEGER", "status.failed"),
	},
	inGroup("batch", "cronjobs"): {
		field("schedule", "TEXT", "spec.schedule"),
		field("suspended", "INTEGER", "spec.suspend"),
	},
	inGroup("networking.k8s.io", "ingresses"): {field("class", "TEXT", "spec.ingressClassName")},
}
