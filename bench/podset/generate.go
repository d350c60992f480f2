package podset

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Generate makes up pods of so many ReplicaSets of 10 to 50, of about the size
// and content that real ones have. The same number gives the same pods.
func Generate(replicaSets int) []corev1.Pod {
	m := maker{rand.New(rand.NewPCG(3, 4))}
	var pods []corev1.Pod
	for i := range replicaSets {
		template := m.template(i)
		for range 10 + m.random.IntN(41) {
			pods = append(pods, m.pod(template))
		}
	}
	return pods
}

type maker struct{ random *rand.Rand }

func (m maker) from(alphabet string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[m.random.IntN(len(alphabet))]
	}
	return string(text)
}

func (m maker) word(n int) string { return m.from("abcdefghijklmnopqrstuvwxyz", n) }

func (m maker) hex(n int) string { return m.from("0123456789abcdef", n) }

func (m maker) uid() types.UID {
	return types.UID(m.hex(8) + "-" + m.hex(4) + "-4" + m.hex(3) + "-9" + m.hex(3) + "-" + m.hex(12))
}

// template is what the pods of one ReplicaSet are made from.
func (m maker) template(i int) *corev1.Pod {
	app := "svc-" + m.word(9)
	hash := m.hex(10)
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5+i, 0, time.UTC))
	labels := map[string]string{
		"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": m.word(8), "pod-template-hash": hash, "team": []string{"core", "edge", "data"}[i%3],
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%02d", i%20), GenerateName: app + "-" + hash + "-",
			CreationTimestamp: created, Labels: labels,
			Annotations: map[string]string{"checksum/config": m.hex(64), "prometheus.io/port": "9090", "prometheus.io/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash, UID: m.uid(), Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
			ServiceAccountName: app, DeprecatedServiceAccount: app, EnableServiceLinks: new(true), Priority: new(int32(0)),
			TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: app}, DefaultMode: new(int32(420)),
			}}}},
		},
	}
	for _, name := range []string{"main", "istio-proxy", "vault-agent"}[:1+m.random.IntN(3)] {
		pod.Spec.Containers = append(pod.Spec.Containers, m.container(app, name))
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &created, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(specFields(pod))},
	}
	return pod
}

func (m maker) container(app, name string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: "registry.example.org/" + app + "/" + name + ":" + m.word(12),
		Args:  []string{"--config=/etc/" + m.word(5), "--v=2", "--" + m.word(8) + "=" + m.word(12)},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8000 + m.random.Int32N(999), Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m"), corev1.ResourceMemory: resource.MustParse("640Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1280Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", ReadOnly: true, MountPath: "/etc/config"}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
			TimeoutSeconds: 1, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3,
		},
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy: corev1.PullIfNotPresent,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
	for range 4 + m.random.IntN(6) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "CFG_" + m.word(6+m.random.IntN(9)), Value: m.word(15 + m.random.IntN(45))})
	}
	return c
}

// specFields are the managed fields of the controller that made the pod.
func specFields(pod *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{}},"f:generateName":{},"f:ownerReferences":{".":{},"k:{\"uid\":\"%s\"}":{}}},"f:spec":{"f:containers":{`, pod.OwnerReferences[0].UID)
	for i, c := range pod.Spec.Containers {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k:{\"name\":\"%s\"}":{".":{},"f:args":{},"f:env":{".":{}`, c.Name)
		for _, e := range c.Env {
			fmt.Fprintf(&b, `,"k:{\"name\":\"%s\"}":{".":{},"f:name":{},"f:value":{}}`, e.Name)
		}
		b.WriteString(`},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{}},"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:volumeMounts":{".":{}}}`)
	}
	b.WriteString(`},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:volumes":{".":{}}}}`)
	return b.String()
}

// pod is one more pod of the template, running.
func (m maker) pod(template *corev1.Pod) corev1.Pod {
	pod := *template.DeepCopy()
	pod.Name = pod.GenerateName + m.from("bcdfghjklmnpqrstvwxz2456789", 5)
	pod.UID = m.uid()
	pod.Spec.NodeName = fmt.Sprintf("ip-10-2-%d-%d.example.internal", m.random.IntN(20), m.random.IntN(20))
	started := metav1.NewTime(pod.CreationTimestamp.Add(time.Duration(m.random.IntN(90)) * time.Second))
	ip := fmt.Sprintf("10.%d.%d.%d", m.random.IntN(256), m.random.IntN(256), m.random.IntN(256))
	pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &started, FieldsType: "FieldsV1", Subresource: "status",
		FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"%s\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`, ip)),
	})
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}},
		PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &started, QOSClass: corev1.PodQOSBurstable,
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "registry.example.org/x@sha256:" + m.hex(64), ContainerID: "containerd://" + m.hex(64),
			Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	return pod
}
