package protobuf

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// replicas are the bytes of n pods, in sets of ten.
func replicas(t testing.TB, n int) [][]byte {
	var raws [][]byte
	for i := range n {
		raws = append(raws, wiretest.Marshal(t, wiretest.Replica(fmt.Sprintf("set-%d", i/10), i)))
	}
	return raws
}

func decodePod(t testing.TB, d *Decoder, raw []byte) *corev1.Pod {
	t.Helper()
	pod, err := d.Decode(raw)
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
	// A reader that has learned may be dropped at any time, by a garbage collection
	// or, at random, under the race detector. And a pool's seed may give a word the
	// slot of a text that differs in every pod, until the lookups of that field
	// pause.
	var d *Decoder
	var missing []string
	for round := range 100 {
		if round%20 == 0 {
			d = newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New(), SharedMetadata: true})
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
	parts := pool.New()
	private := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: parts})
	shared := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: parts, SharedMetadata: true})
	raws := replicas(t, 10)
	for round := range 20 {
		for i, raw := range raws {
			want := wiretest.Replica("set-0", i).Labels
			a, b := decodePod(t, private, raw), decodePod(t, shared, raw)
			if !reflect.DeepEqual(a.Labels, want) || !reflect.DeepEqual(b.Labels, want) {
				t.Fatalf("round %d: labels %v and %v", round, a.Labels, b.Labels)
			}
			a.Labels["mine"], a.Annotations["mine"] = "x", "y"
		}
	}
	// The text of the labels is shared nevertheless.
	a, b := decodePod(t, private, raws[0]), decodePod(t, private, raws[1])
	if unsafe.StringData(a.Labels["pod-template-hash"]) != unsafe.StringData(b.Labels["pod-template-hash"]) {
		t.Error("each map has text of its own")
	}
}

func TestProtobufDrop(t *testing.T) {
	parts := pool.New()
	whole := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: parts})
	less := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: parts, Drop: []string{
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
			// The same through the stock decoder: a message in two halves.
			twice := append(lenField(1), raw...)
			if got := decodePod(t, less, twice); protobufFast(less, twice) || !reflect.DeepEqual(got, want) {
				t.Fatalf("irregular: got\n%+v, want\n%+v", got, want)
			}
		}
	}
}

// Many goroutines with one decoder and pool: every value is right, then and later,
// while parts come, age and go.
func TestProtobufConcurrently(t *testing.T) {
	parts := pool.New()
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: parts})
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
					pod, err := d.Decode(raws[i])
					if err != nil {
						t.Error(err)
						return
					}
					kept[i] = pod
				}
				if round%5 == g%5 {
					parts.Collect()
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

// Objects and their parts are collected when nobody uses them; the decoder keeps a
// few.
func TestProtobufLeavesNothing(t *testing.T) {
	parts := pool.New()
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: parts})
	for _, raw := range replicas(t, 2000) {
		decodePod(t, d, raw)
	}
	wiretest.CollectUntil(t, func() bool { return parts.Stats().Parts == 0 })
}

// probed is a pod whose two probes are equal, with a path that only its workload
// has.
func probed(workload, n int, readiness bool) *corev1.Pod {
	get := func() *corev1.HTTPGetAction {
		return &corev1.HTTPGetAction{Path: fmt.Sprintf("/the/health/of/workload/number-%03d", workload), Port: intstr.FromInt32(8080), Scheme: "HTTP"}
	}
	container := corev1.Container{
		Name: fmt.Sprintf("container-%03d", workload), Image: fmt.Sprintf("registry.example.com/images/number-%03d:v1", workload),
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get()}, PeriodSeconds: 10},
	}
	if readiness {
		container.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get()}, PeriodSeconds: 5}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pod-%03d-%d", workload, n), Namespace: "ns",
			UID: types.UID(fmt.Sprintf("uid-%d-%d", workload, n)), ResourceVersion: strconv.Itoa(workload*100 + n),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
	}
}

// Parts in the pool are complete, also where an object repeats within itself.
func TestRepeatsWithinAnObject(t *testing.T) {
	parts := pool.New()
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: parts})
	var held []any
	for workload := range 60 {
		for n := range 3 {
			want := probed(workload, n, workload > 40)
			got, err := d.Decode(wiretest.Marshal(t, want))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("pod %d of workload %d differs, or %v", n, workload, err)
			}
			held = append(held, got)
		}
	}
	parts.Verify()
	if s := parts.Stats(); s.StrayWrites != 0 {
		t.Errorf("nobody wrote to an object, and %d writes are reported", s.StrayWrites)
	}
	runtime.KeepAlive(held)
}

// What repeats within objects, and in no other object, does not go into the pool.
func TestRepeatsWithinAnObjectAreNotPooled(t *testing.T) {
	parts := pool.New()
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: parts})
	const pods = 1000
	var held []*corev1.Pod
	for n := range pods {
		mounts := []corev1.VolumeMount{{Name: fmt.Sprintf("kube-api-access-%05d", n), MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", VolumeMounts: mounts}, {Name: "sidecar", VolumeMounts: mounts}}}}
		pod.Name, pod.UID = fmt.Sprintf("pod-%05d", n), types.UID(fmt.Sprintf("uid-%05d", n))
		got := decodePod(t, d, wiretest.Marshal(t, pod))
		if a, b := got.Spec.Containers[0].VolumeMounts, got.Spec.Containers[1].VolumeMounts; !samePointer(a, b) {
			t.Fatalf("pod %d has its mounts twice", n)
		}
		held = append(held, got)
	}
	// With the race detector, readers and what they learned are dropped at random.
	if s := parts.Stats(); s.Parts+int(s.Forgotten) > pods*3/4 && !wiretest.RaceEnabled {
		t.Errorf("%d pods have put %d parts into the pool", pods, s.Parts+int(s.Forgotten))
	}
	runtime.KeepAlive(held)
}
