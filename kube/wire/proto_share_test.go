package wire

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// replica is the nth pod of a ReplicaSet.
func replica(set string, n int) *corev1.Pod {
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
				{Manager: "kcm", Operation: "Update", Time: &now, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + set + `":{}}},"f:spec":{}}`)},
				{Manager: "kubelet", Operation: "Update", Time: &now, FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:status":{"k:10.0.%d":{}}}`, n))},
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

// replicas are the bytes of n pods, in sets of ten.
func replicas(t testing.TB, n int) [][]byte {
	var raws [][]byte
	for i := range n {
		raws = append(raws, marshal(t, replica(fmt.Sprintf("set-%d", i/10), i)))
	}
	return raws
}

func decodePod(t testing.TB, d *Decoder, raw []byte) *corev1.Pod {
	t.Helper()
	pod, err := d.Protobuf(raw)
	if err != nil {
		t.Fatal(err)
	}
	return pod.(*corev1.Pod)
}

func samePointer[T any](a, b []T) bool {
	return len(a) > 0 && unsafe.SliceData(a) == unsafe.SliceData(b)
}

func sameMap(a, b any) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

func TestProtobufShares(t *testing.T) {
	raws := replicas(t, 10)
	// A reader that has learned may be lost at any time, to a garbage collection or,
	// by chance, under the race detector. And a pool's seed may give a word the slot of
	// a text that every pod has its own of, until that text's field is at rest.
	var d *Decoder
	var missing []string
	for round := range 100 {
		if round%20 == 0 {
			d = newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: NewPool(), SharedMetadata: true})
		}
		var pods []*corev1.Pod
		for _, raw := range raws {
			pods = append(pods, decodePod(t, d, raw))
		}
		if missing = unsharedParts(pods[8], pods[9]); len(missing) == 0 {
			return
		}
	}
	t.Errorf("each pod has its own: %s", missing)
}

func unsharedParts(a, b *corev1.Pod) []string {
	ca, cb := &a.Spec.Containers[0], &b.Spec.Containers[0]
	var missing []string
	for what, shared := range map[string]bool{
		"owners":      samePointer(a.OwnerReferences, b.OwnerReferences),
		"env":         samePointer(ca.Env, cb.Env),
		"args":        samePointer(ca.Args, cb.Args),
		"tolerations": samePointer(a.Spec.Tolerations, b.Spec.Tolerations),
		"labels":      sameMap(a.Labels, b.Labels),
		"annotations": sameMap(a.Annotations, b.Annotations),
		"requests":    sameMap(ca.Resources.Requests, cb.Resources.Requests),
		"probe":       ca.ReadinessProbe == cb.ReadinessProbe,
		"projected":   a.Spec.Volumes[0].Projected == b.Spec.Volumes[0].Projected,
		"security":    a.Spec.SecurityContext == b.Spec.SecurityContext,
		"fields":      a.ManagedFields[0].FieldsV1 == b.ManagedFields[0].FieldsV1,
		"namespace":   unsafe.StringData(a.Namespace) == unsafe.StringData(b.Namespace),
		"image":       unsafe.StringData(a.Status.ContainerStatuses[0].Image) == unsafe.StringData(b.Status.ContainerStatuses[0].Image),
	} {
		if !shared {
			missing = append(missing, what)
		}
	}
	if samePointer(a.Spec.Containers, b.Spec.Containers) || samePointer(a.Status.Conditions, b.Status.Conditions) {
		missing = append(missing, "what differs")
	}
	return missing
}

func TestProtobufPrivateMaps(t *testing.T) {
	pool := NewPool()
	private := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool})
	shared := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool, SharedMetadata: true})
	raws := replicas(t, 10)
	for round := range 20 {
		for i, raw := range raws {
			want := replica("set-0", i).Labels
			a, b := decodePod(t, private, raw), decodePod(t, shared, raw)
			if !reflect.DeepEqual(a.Labels, want) || !reflect.DeepEqual(b.Labels, want) {
				t.Fatalf("round %d: labels %v and %v", round, a.Labels, b.Labels)
			}
			a.Labels["mine"], a.Annotations["mine"] = "x", "y"
		}
	}
	// The text of the labels is shared all the same.
	a, b := decodePod(t, private, raws[0]), decodePod(t, private, raws[1])
	if unsafe.StringData(a.Labels["pod-template-hash"]) != unsafe.StringData(b.Labels["pod-template-hash"]) {
		t.Error("each map has text of its own")
	}
}

func TestProtobufDrop(t *testing.T) {
	pool := NewPool()
	whole := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool})
	less := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool, Drop: []string{
		"metadata.managedFields", "spec.containers.env.valueFrom.fieldRef", "spec.volumes.projected", "status.phase", "kind",
	}})
	for round := range 5 {
		for i, raw := range replicas(t, 20) {
			want := decodePod(t, whole, raw).DeepCopy()
			want.ManagedFields, want.Status.Phase, want.Spec.Volumes[0].Projected = nil, "", nil
			want.Spec.Containers[0].Env[8].ValueFrom.FieldRef = nil
			if got := decodePod(t, less, raw); !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d, pod %d: got\n%+v, want\n%+v", round, i, got, want)
			}
			// The same where the stock decoder has to help: a message in two halves.
			twice := append(lenField(1), raw...)
			if got := decodePod(t, less, twice); protobufFast(less, twice) || !reflect.DeepEqual(got, want) {
				t.Fatalf("irregular: got\n%+v, want\n%+v", got, want)
			}
		}
	}
}

func TestDropUnknown(t *testing.T) {
	for path, complaint := range map[string]string{
		"metadata.managedField":   `cannot drop "metadata.managedField" from v1.Pod: v1.ObjectMeta has no field "managedField"`,
		"metadata.labels.app":     `"labels" is a map[string]string`,
		"spec.containers.name.x":  `"name" is a string`,
		"":                        `v1.Pod has no field ""`,
		"metadata.":               `v1.ObjectMeta has no field ""`,
		"spec.volumes.configmap":  `has no field "configmap"`,
		"spec.volumes.configMap":  "",
		"metadata.labels":         "",
		"apiVersion":              "",
		"spec.containers.env":     "",
		"status.conditions.type":  "",
		"spec.volumes.secret.":    `v1.SecretVolumeSource has no field ""`,
		"spec.volumes.nfs.server": "",
	} {
		_, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), Options{Drop: []string{path}})
		if (err == nil) != (complaint == "") || err != nil && !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q: error %v, want %q", path, err, complaint)
		}
	}
}

// Many goroutines with one decoder and pool: every value is right, at the time and
// later, while parts come, age and go.
func TestProtobufConcurrently(t *testing.T) {
	pool := NewPool()
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool})
	raws := replicas(t, 60)
	wants := make([]any, len(raws))
	for i, raw := range raws {
		wants[i], _ = stockProtobuf(reflect.TypeFor[corev1.Pod](), raw)
	}
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			kept := make([]any, len(raws))
			for round := range 10 {
				for i := range raws {
					i = (i*7 + g) % len(raws)
					pod, err := d.Protobuf(raws[i])
					if err != nil {
						t.Error(err)
						return
					}
					kept[i] = pod
				}
				if round%5 == g%5 {
					pool.Collect()
					runtime.GC()
				}
			}
			for i := range kept {
				if !reflect.DeepEqual(kept[i], wants[i]) {
					t.Errorf("pod %d is another one now", i)
				}
			}
		})
	}
	group.Wait()
}

// Objects and their parts go when nobody uses them; the decoder keeps a few.
func TestProtobufLeavesNothing(t *testing.T) {
	pool := NewPool()
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool})
	for _, raw := range replicas(t, 2000) {
		decodePod(t, d, raw)
	}
	settle(t, func() bool { return pool.Stats().Parts == 0 })
}
