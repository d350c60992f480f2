package ondisk

import (
	"encoding/json"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// dictionary is content that Kubernetes objects share; objects on disk are compressed
// against it. It is an invented pod, as protobuf or as JSON, with the defaults that
// servers fill in and the managed fields that controllers leave. Real pods take 2.6 KB
// with it, 4.0 KB without, and 1.9 KB with a dictionary made of 64 KB of them, which
// would keep their content.
//
// Changing it is safe: each collection keeps the one that it was created with.
func dictionary(protobuf bool) []byte {
	if protobuf {
		return protobufDictionary()
	}
	return jsonDictionary()
}

var protobufDictionary = sync.OnceValue(func() []byte {
	raw, err := usualPod().Marshal()
	if err != nil {
		return nil
	}
	return raw
})

var jsonDictionary = sync.OnceValue(func() []byte {
	raw, err := json.Marshal(usualPod())
	if err != nil {
		return nil
	}
	return raw
})

func usualPod() *corev1.Pod {
	then := metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())
	const uid = "00000000-0000-0000-0000-000000000000"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "app-5d78c9869d-", Name: "app-5d78c9869d-abcde", Namespace: "default", UID: uid, ResourceVersion: "100000", CreationTimestamp: then,
		Labels: words("app", "app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/version",
			"apps.kubernetes.io/pod-index", "controller-revision-hash", "helm.sh/chart", "pod-template-generation", "pod-template-hash", "statefulset.kubernetes.io/pod-name"),
		Annotations:     words("checksum/config", "cluster-autoscaler.kubernetes.io/safe-to-evict", "kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/restartedAt", "prometheus.io/path", "prometheus.io/port", "prometheus.io/scrape"),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app-5d78c9869d", UID: uid, Controller: new(true), BlockOwnerDeletion: new(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &then, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(managedByControllers)},
			{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &then, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(managedByKubelet), Subresource: "status"},
		},
	}}
	pod.Spec = usualSpec()
	pod.Status = usualStatus(pod.Spec, then)
	return pod
}

func words(keys ...string) map[string]string {
	all := map[string]string{}
	for _, key := range keys {
		all[key] = ""
	}
	return all
}

const usualMount, usualVolume = "/var/run/secrets/kubernetes.io/serviceaccount", "kube-api-access-abcde"

func usualSpec() corev1.PodSpec {
	from := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	probe := &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
	spec := corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: usualVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420)), Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
		}}}}},
		Containers: []corev1.Container{{
			Name: "app", Image: "registry.k8s.io/app:v1.0.0", ImagePullPolicy: corev1.PullIfNotPresent,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Env:   []corev1.EnvVar{from("POD_NAME", "metadata.name"), from("POD_NAMESPACE", "metadata.namespace"), from("NODE_NAME", "spec.nodeName"), from("POD_IP", "status.podIP"), from("HOST_IP", "status.hostIP")},
			Resources: corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")},
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			},
			VolumeMounts:  []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}, {Name: usualVolume, ReadOnly: true, MountPath: usualMount}},
			LivenessProbe: probe, ReadinessProbe: probe,
			TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, RunAsNonRoot: new(true), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false)},
		}},
		RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)), DNSPolicy: corev1.DNSClusterFirst,
		ServiceAccountName: "default", DeprecatedServiceAccount: "default", NodeName: "node-1", SecurityContext: &corev1.PodSecurityContext{},
		SchedulerName: corev1.DefaultSchedulerName, Priority: new(int32(0)), EnableServiceLinks: new(true), PreemptionPolicy: new(corev1.PreemptLowerPriority),
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))})
	}
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return spec
}

func usualStatus(spec corev1.PodSpec, then metav1.Time) corev1.PodStatus {
	const ip = "10.0.0.1"
	status := corev1.PodStatus{Phase: corev1.PodRunning, HostIP: ip, HostIPs: []corev1.HostIP{{IP: ip}}, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &then, QOSClass: corev1.PodQOSBurstable}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: then})
	}
	c := spec.Containers[0]
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: c.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: then}}, Ready: true, Started: new(true),
		Image: c.Image, ImageID: "registry.k8s.io/app@sha256:", ContainerID: "containerd://", Resources: &c.Resources,
		VolumeMounts: []corev1.VolumeMountStatus{{Name: usualVolume, MountPath: usualMount, ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyDisabled)}},
	}}
	return status
}

// The fields that controllers and kubelets of real pods manage, in the order in which
// servers write them.
const (
	managedByControllers = `{"f:metadata":{"f:annotations":{".":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:app.kubernetes.io/component":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:app.kubernetes.io/version":{},"f:helm.sh/chart":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"00000000-0000-0000-0000-000000000000\"}":{}}},` +
		`"f:spec":{"f:affinity":{".":{},"f:nodeAffinity":{},"f:podAntiAffinity":{".":{},"f:preferredDuringSchedulingIgnoredDuringExecution":{},"f:requiredDuringSchedulingIgnoredDuringExecution":{}}},"f:automountServiceAccountToken":{},"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:command":{},` +
		`"f:env":{".":{},"k:{\"name\":\"POD_NAME\"}":{".":{},"f:name":{},"f:value":{},"f:valueFrom":{".":{},"f:configMapKeyRef":{},"f:fieldRef":{},"f:resourceFieldRef":{},"f:secretKeyRef":{}}},"k:{\"name\":\"POD_NAMESPACE\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}}},"f:envFrom":{},"f:image":{},"f:imagePullPolicy":{},` +
		`"f:lifecycle":{".":{},"f:preStop":{".":{},"f:exec":{".":{},"f:command":{}}}},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:initialDelaySeconds":{},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},` +
		`"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:initialDelaySeconds":{},"f:periodSeconds":{},"f:successThreshold":{},"f:tcpSocket":{".":{},"f:port":{}},"f:timeoutSeconds":{}},` +
		`"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:ephemeral-storage":{},"f:memory":{}}},"f:securityContext":{".":{},"f:allowPrivilegeEscalation":{},"f:capabilities":{".":{},"f:add":{},"f:drop":{}},"f:privileged":{},"f:readOnlyRootFilesystem":{},"f:runAsGroup":{},"f:runAsNonRoot":{},"f:runAsUser":{},"f:seccompProfile":{".":{},"f:type":{}}},` +
		`"f:startupProbe":{},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/tmp\"}":{".":{},"f:mountPath":{},"f:name":{},"f:readOnly":{},"f:subPath":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:hostNetwork":{},"f:imagePullSecrets":{".":{},"k:{\"name\":\"\"}":{}},"f:initContainers":{".":{}},` +
		`"f:nodeName":{},"f:nodeSelector":{},"f:priorityClassName":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{".":{},"f:fsGroup":{},"f:runAsNonRoot":{},"f:runAsUser":{}},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:tolerations":{},"f:topologySpreadConstraints":{},` +
		`"f:volumes":{".":{},"k:{\"name\":\"tmp\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:items":{},"f:name":{}},"f:emptyDir":{},"f:hostPath":{".":{},"f:path":{},"f:type":{}},"f:name":{},"f:persistentVolumeClaim":{".":{},"f:claimName":{}},"f:projected":{".":{},"f:defaultMode":{},"f:sources":{}},"f:secret":{".":{},"f:defaultMode":{},"f:optional":{},"f:secretName":{}}}}}}`
	managedByKubelet = `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},` +
		`"k:{\"type\":\"PodReadyToStartContainers\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"PodScheduled\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},` +
		`"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:initContainerStatuses":{},"f:observedGeneration":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.0.1\"}":{".":{},"f:ip":{}}},"f:qosClass":{},"f:startTime":{}}}`
)
