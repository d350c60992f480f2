package share_test

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/share"
)

// TestShareKeysAreNoTexts: a remembered key, identified by its bytes, is never read
// as a remembered text, identified by the interface that holds it.
func TestShareKeysAreNoTexts(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	sharer := share.New(pool.New(), pool.Options{})
	for n := range 300 {
		// Read as a string's header, it points outside all memory.
		key := binary.LittleEndian.AppendUint64(nil, 0x4141410000000000+uint64(n)*8)
		key = binary.LittleEndian.AppendUint64(key, 16)
		object := map[string]any{string(key): int64(1)}
		for i := range 50 {
			object[fmt.Sprint(n, i)] = fmt.Sprintf("%016d", n*50+i)
		}
		if got := sharer.Share(object); !reflect.DeepEqual(got, object) {
			t.Fatalf("object %d: got %v", n, got)
		}
	}
}

const constant = "a constant of the program, in memory to which there are no weak pointers"

var lists = []any{[]any{"a", "b"}, []any{constant, true}, map[string]any{constant: constant}}

// TestShareConstants: texts of the program itself are shared like any other.
func TestShareConstants(t *testing.T) {
	parts := pool.New()
	var kept []any
	for range 4 {
		pod := somePod("web", 1)
		pod.Status.Message = constant
		untyped := &unstructured.Unstructured{Object: map[string]any{"status": constant, constant: "x", "list": []any{constant, int64(1)}, "lists": lists}}
		sharer := share.New(parts, pool.Options{}) // which remembers nothing by itself
		kept = append(kept, sharer.Share(pod), sharer.Share(untyped))
	}
	for range 3 {
		runtime.GC()
		parts.Collect()
	}
	if got := kept[0].(*corev1.Pod).Status.Message; got != constant || parts.Stats().Old == 0 {
		t.Errorf("got %q; %+v", got, parts.Stats())
	}
	runtime.KeepAlive(kept)
}

// TestShareLikeManyWays: a value that very many references reach does not hang the
// comparison with an older state.
func TestShareLikeManyWays(t *testing.T) {
	type fork struct{ Left, Right *fork }
	sharer := share.New(pool.New(), pool.Options{})
	typed := func() *fork {
		f := &fork{}
		for range 60 {
			f = &fork{f, f}
		}
		return f
	}
	tree := func() map[string]any {
		m := map[string]any{"end": int64(1)}
		for range 60 {
			m = map[string]any{"left": m, "right": m}
		}
		return m
	}
	sharer.ShareLike(typed(), sharer.Share(typed()))
	sharer.ShareLike(tree(), sharer.Share(tree()))
}

// TestShareQuantityText: a quantity caches its text at the first String, which is
// not a change.
func TestShareQuantityText(t *testing.T) {
	parts := pool.New()
	sharer := share.New(parts, pool.Options{})
	for n := range 20 {
		pod := somePod("web", n)
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1<<30, resource.BinarySI)}}}}
		got := sharer.Share(pod).(*corev1.Pod)
		if !reflect.DeepEqual(got, pod) {
			t.Fatalf("pod %d is different", n)
		}
		if text := got.Spec.Volumes[0].EmptyDir.SizeLimit.String(); text != "1Gi" {
			t.Errorf("got %s", text)
		}
	}
	if n := parts.Stats().StrayWrites; n != 0 {
		t.Errorf("%d mutations", n)
	}
}
