package wiretest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// fieldsV1 is metav1.NewFieldsV1, which apimachinery has from 0.36 on.
func fieldsV1(text string) *metav1.FieldsV1 {
	var f metav1.FieldsV1
	if err := f.UnmarshalJSON([]byte(text)); err != nil {
		panic(err) // it only refuses a nil receiver
	}
	return &f
}

// Replica is the nth pod of a ReplicaSet.
func Replica(set string, n int) *corev1.Pod {
	yes, grace, mode, token := true, int64(30), int32(420), int64(3607)
	now := metav1.NewTime(time.Unix(1_790_000_000+int64(n), 0))
	access := fmt.Sprintf("kube-api-access-%05d", n)
	var env []corev1.EnvVar
	for i := range 8 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: set + strings.Repeat("-value", i)})
	}
	env = append(env, corev1.EnvVar{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}})
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%05d", set, n), GenerateName: set + "-", Namespace: "shop",
			UID: types.UID(fmt.Sprintf("%s-uid-%05d", set, n)), ResourceVersion: fmt.Sprint(1000 + n), CreationTimestamp: now,
			Labels:          map[string]string{"app": set, "pod-template-hash": set + "-hash", "tier": "web"},
			Annotations:     map[string]string{"checksum/config": strings.Repeat(set, 8)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: types.UID(set), Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kcm", Operation: "Update", Time: &now, FieldsV1: fieldsV1(`{"f:metadata":{"f:labels":{"f:` + set + `":{}}},"f:spec":{}}`)},
				{Manager: "kubelet", Operation: "Update", Time: &now, FieldsV1: fieldsV1(fmt.Sprintf(`{"f:status":{"k:10.0.%d":{}}}`, n))},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d.internal", n%20), RestartPolicy: corev1.RestartPolicyAlways, SchedulerName: "default-scheduler",
			ServiceAccountName: "default", TerminationGracePeriodSeconds: &grace, SecurityContext: &corev1.PodSecurityContext{},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/" + set + ":v1", Env: env, Args: []string{"--config=/etc/" + set, "--v=2"},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
					Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi")},
				},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/" + set, Port: intstr.FromInt32(8080)}}},
				VolumeMounts:   []corev1.VolumeMount{{Name: access, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: access, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: &mode, Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &token, Path: "token"}}},
			}}}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: fmt.Sprintf("10.0.0.%d", n%20), PodIP: fmt.Sprintf("10.1.2.%d", n), StartTime: &now,
			Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True", LastTransitionTime: now}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", ContainerID: fmt.Sprintf("containerd://%064d", n), Image: "registry.example/" + set + ":v1", Ready: true, Started: &yes,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			}},
		},
	}
}

// Restarted is a later state of a pod: its status and version differ.
func Restarted(pod *corev1.Pod, nth int) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = fmt.Sprint(100_000 + nth)
	pod.Status.Message = fmt.Sprintf("restarted for the %dth time", nth)
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].RestartCount = int32(nth)
	}
	return pod
}

// Marshal returns the protobuf form of an object.
func Marshal(t testing.TB, object any) []byte {
	t.Helper()
	raw, err := object.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
