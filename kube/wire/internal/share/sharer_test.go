package share_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/share"
)

// somePod is the nth pod of a ReplicaSet.
func somePod(owner string, n int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", owner, n)
	token := "kube-api-access-" + name
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lake", Name: name, UID: types.UID("uid-of-" + name),
			Labels:          map[string]string{"app": owner, "pod-template-hash": owner + "-hash"},
			Annotations:     map[string]string{"checksum/config": strings.Repeat(owner, 8)},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: owner, Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName:                      fmt.Sprint("node-", n%3),
			TerminationGracePeriodSeconds: ptr.To[int64](30),
			Volumes: []corev1.Volume{{Name: token, VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](420), Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
				}},
			}}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/" + owner + ":v1-with-a-long-tag-that-is-worth-sharing",
				VolumeMounts: []corev1.VolumeMount{{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi"),
				}},
			}},
			Tolerations: []corev1.Toleration{{Key: "dry", Operator: "Exists", TolerationSeconds: ptr.To[int64](300)}},
		},
		Status: corev1.PodStatus{Phase: "Running", PodIP: fmt.Sprintf("10.0.0.%d", n)},
	}
	for i := range 6 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint(owner, i), Value: strings.Repeat("x", 20+i)})
	}
	return pod
}

func TestSharePods(t *testing.T) {
	sharer := share.New(pool.New(), pool.Options{})
	given := somePod("web", 1)
	a, b := sharer.Share(given).(*corev1.Pod), sharer.Share(somePod("web", 2)).(*corev1.Pod)
	if !reflect.DeepEqual(a, given) || !reflect.DeepEqual(b, somePod("web", 2)) {
		t.Fatal("the content is different")
	}
	same := map[string][2]unsafe.Pointer{
		"tolerations": {unsafe.Pointer(&a.Spec.Tolerations[0]), unsafe.Pointer(&b.Spec.Tolerations[0])},
		"projected":   {unsafe.Pointer(a.Spec.Volumes[0].Projected), unsafe.Pointer(b.Spec.Volumes[0].Projected)},
		"env":         {unsafe.Pointer(&a.Spec.Containers[0].Env[0]), unsafe.Pointer(&b.Spec.Containers[0].Env[0])},
		"image":       {unsafe.Pointer(unsafe.StringData(a.Spec.Containers[0].Image)), unsafe.Pointer(unsafe.StringData(b.Spec.Containers[0].Image))},
		"requests":    {reflect.ValueOf(a.Spec.Containers[0].Resources.Requests).UnsafePointer(), reflect.ValueOf(b.Spec.Containers[0].Resources.Requests).UnsafePointer()},
		"label": {unsafe.Pointer(unsafe.StringData(a.Labels["pod-template-hash"])),
			unsafe.Pointer(unsafe.StringData(b.Labels["pod-template-hash"]))},
	}
	for what, at := range same {
		if at[0] != at[1] {
			t.Errorf("%s: not shared", what)
		}
	}
	apart := map[string][2]unsafe.Pointer{
		"containers": {unsafe.Pointer(&a.Spec.Containers[0]), unsafe.Pointer(&b.Spec.Containers[0])},
		"labels":     {reflect.ValueOf(a.Labels).UnsafePointer(), reflect.ValueOf(b.Labels).UnsafePointer()},
		"owners":     {unsafe.Pointer(&a.OwnerReferences[0]), unsafe.Pointer(&b.OwnerReferences[0])},
		"grace":      {unsafe.Pointer(a.Spec.TerminationGracePeriodSeconds), unsafe.Pointer(b.Spec.TerminationGracePeriodSeconds)},
	}
	for what, at := range apart {
		if at[0] == at[1] {
			t.Errorf("%s: shared", what)
		}
	}
	if c := cap(a.Spec.Containers[0].Env); c != 6 {
		t.Errorf("a shared slice of 6 has room for %d", c)
	}
}

// TestShareExactly: values that are almost equal stay different.
func TestShareExactly(t *testing.T) {
	type values struct {
		Floats  []float64
		Times   []metav1.Time
		Amounts map[string]resource.Quantity
		Bytes   []byte
		Lists   [][]string
		Maps    []map[string]string
		Ptr     *[]int
		Odd     []struct {
			A byte
			B int64
			c string
		}
		Any any
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	parsed := resource.MustParse("1")
	canonical := resource.MustParse("1")
	_ = canonical.String()
	all := []*values{
		{Floats: []float64{0}}, {Floats: []float64{math.Copysign(0, -1)}}, {Floats: []float64{math.NaN()}},
		{Floats: []float64{math.Float64frombits(math.Float64bits(math.NaN()) + 1)}}, {Floats: []float64{}}, {},
		{Times: []metav1.Time{{Time: at}}}, {Times: []metav1.Time{{Time: at.Local()}}}, {Times: []metav1.Time{{Time: at.In(time.FixedZone("", 0))}}},
		{Times: []metav1.Time{{Time: at.In(time.FixedZone("", 0))}}},
		{Amounts: map[string]resource.Quantity{"a": parsed}}, {Amounts: map[string]resource.Quantity{"a": canonical}},
		{Amounts: map[string]resource.Quantity{"a": resource.MustParse("1000m")}}, {Amounts: map[string]resource.Quantity{}},
		{Bytes: []byte{}}, {Bytes: []byte("a")}, {Bytes: []byte("b")},
		{Lists: [][]string{nil}}, {Lists: [][]string{{}}}, {Lists: [][]string{{""}}}, {Lists: [][]string{{"", ""}}}, {Lists: [][]string{{"a"}, {"b"}}}, {Lists: [][]string{{"a", "b"}, nil}},
		{Maps: []map[string]string{nil}}, {Maps: []map[string]string{{}}}, {Maps: []map[string]string{{"a": "b"}}}, {Maps: []map[string]string{{"b": "a"}}}, {Maps: []map[string]string{{"a": ""}}},
		{Ptr: &[]int{}}, {Ptr: new([]int)}, {Ptr: &[]int{1}},
		{Odd: []struct {
			A byte
			B int64
			c string
		}{{1, 2, "a"}, {1, 2, "b"}}},
		{Any: 1}, {Any: int64(1)}, {Any: 1.0}, {Any: "1"}, {Any: true}, {Any: []any{}}, {Any: []any(nil)}, {Any: map[string]any{}}, {Any: map[string]any(nil)},
		{Any: []any{int64(1), map[string]any{"a": nil, "b": []any{"c"}}}}, {Any: []any{1, map[string]any{"a": nil, "b": []any{"c"}}}},
	}
	sharer := share.New(pool.New(), pool.Options{})
	for round := range 3 {
		for i, v := range all {
			got := sharer.Share(v).(*values)
			if show(got) != show(v) {
				t.Errorf("round %d, value %d: %s, want %s", round, i, show(got), show(v))
			}
		}
	}
}

// show formats a value to the bit.
func show(v any) string {
	var b strings.Builder
	showValue(&b, reflect.ValueOf(v), 0)
	return b.String()
}

func showValue(b *strings.Builder, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*time.Location]() {
			fmt.Fprintf(b, "%p", v.UnsafePointer())
		} else if v.IsNil() || depth > 50 {
			b.WriteString("nil")
		} else {
			b.WriteString("&")
			showValue(b, v.Elem(), depth+1)
		}
	case reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
		} else {
			fmt.Fprintf(b, "%s:", v.Elem().Type())
			showValue(b, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			b.WriteString("|")
			showValue(b, v.Field(i), depth+1)
		}
	case reflect.Slice:
		fmt.Fprintf(b, "[%v,%d", v.IsNil(), v.Len())
		for i := range v.Len() {
			b.WriteString(" ")
			showValue(b, v.Index(i), depth+1)
		}
		b.WriteString("]")
	case reflect.Map:
		fmt.Fprintf(b, "{%v,%d", v.IsNil(), v.Len())
		var rows []string
		for i := v.MapRange(); i.Next(); {
			var row strings.Builder
			showValue(&row, i.Key(), depth+1)
			row.WriteString("=")
			showValue(&row, i.Value(), depth+1)
			rows = append(rows, row.String())
		}
		for range rows { // by selection: there are few
			least := 0
			for i := range rows {
				if rows[least] == "" || rows[i] != "" && rows[i] < rows[least] {
					least = i
				}
			}
			b.WriteString(" " + rows[least])
			rows[least] = ""
		}
		b.WriteString("}")
	case reflect.Float64:
		fmt.Fprintf(b, "%x", math.Float64bits(v.Float()))
	default:
		fmt.Fprintf(b, "%#v", v)
	}
}

// TestShareMutations: setting fields, labels and annotations of one object, and
// appending to it, changes no other object.
func TestShareMutations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sharer := share.New(pool.New(), pool.Options{})
		var pods, copies []*corev1.Pod
		for range rapid.IntRange(2, 8).Draw(t, "pods") {
			owner := rapid.SampledFrom([]string{"web", "db"}).Draw(t, "owner")
			pods = append(pods, sharer.Share(somePod(owner, rapid.IntRange(0, 3).Draw(t, "n"))).(*corev1.Pod))
			copies = append(copies, pods[len(pods)-1].DeepCopy())
		}
		victim := rapid.IntRange(0, len(pods)-1).Draw(t, "victim")
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			p := pods[victim]
			switch rapid.IntRange(0, 6).Draw(t, "change") {
			case 0:
				p.Labels["app"] = "changed"
			case 1:
				delete(p.Annotations, "checksum/config")
			case 2:
				p.Spec.NodeName, p.Name = "changed", "changed"
			case 3:
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "changed"})
			case 4:
				p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Name: "changed"})
			case 5:
				p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
			case 6:
				p.Status = corev1.PodStatus{Phase: "Failed"}
			}
		}
		for i := range pods {
			if i != victim && !reflect.DeepEqual(pods[i], copies[i]) {
				t.Errorf("pod %d changed with pod %d", i, victim)
			}
		}
	})
}

// TestShareConcurrently is for the race detector.
func TestShareConcurrently(t *testing.T) {
	sharer := share.New(pool.New(), pool.Options{})
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for n := range 200 {
				owner := fmt.Sprint("rs-", (n+g)%7)
				given := somePod(owner, n)
				if got := sharer.Share(given); !reflect.DeepEqual(got, given) {
					t.Error("different")
					return
				}
			}
		})
	}
	group.Wait()
}

// TestShareLike: an update takes over what has not changed, and does not read
// fields of the older state that its holder may write.
func TestShareLike(t *testing.T) {
	sharer := share.New(pool.New(), pool.Options{})
	old := sharer.Share(somePod("web", 1)).(*corev1.Pod)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				old.Labels["app"] = "written"
			}
		}
	})
	next := somePod("web", 1)
	next.Status.Phase = "Failed"
	next.Spec.Tolerations[0].Key = "wet"
	for range 100 {
		got := sharer.ShareLike(next, old).(*corev1.Pod)
		if !reflect.DeepEqual(got, next) {
			t.Fatal("the content is different")
		}
		if &got.Spec.Containers[0] != &old.Spec.Containers[0] || &got.Spec.Volumes[0] != &old.Spec.Volumes[0] {
			t.Fatal("what has not changed is not that of the older state")
		}
		if &got.Spec.Tolerations[0] == &old.Spec.Tolerations[0] {
			t.Fatal("what has changed is that of the older state")
		}
	}
	close(stop)
	writer.Wait()
}
