package share_test

import (
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/share"
)

// untypedPod is a pod without its Go type.
func untypedPod(t testing.TB, owner string, n int) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(somePod(owner, n))
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func at(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

func TestShareUnstructured(t *testing.T) {
	sharer := share.New(pool.New(), pool.Options{})
	given := untypedPod(t, "web", 1)
	a, b := sharer.Share(given).(*unstructured.Unstructured), sharer.Share(untypedPod(t, "web", 2)).(*unstructured.Unstructured)
	if !reflect.DeepEqual(given, untypedPod(t, "web", 1)) {
		t.Error("what was given has changed")
	}
	if !reflect.DeepEqual(a, untypedPod(t, "web", 1)) || !reflect.DeepEqual(b, untypedPod(t, "web", 2)) {
		t.Error("the content is different")
	}
	for _, path := range [][]string{{"spec", "tolerations"}} {
		x, y := at(a, path...).([]any), at(b, path...).([]any)
		if &x[0] != &y[0] || cap(x) != len(x) {
			t.Errorf("%v: not shared, or with room behind", path)
		}
	}
	for _, path := range [][]string{{}, {"metadata"}, {"metadata", "labels"}, {"metadata", "annotations"}, {"metadata", "ownerReferences"}} {
		if reflect.ValueOf(at(a, path...)).Pointer() == reflect.ValueOf(at(b, path...)).Pointer() {
			t.Errorf("%v: shared", path)
		}
	}
}

// TestShareTrees: any tree comes back equal, and the input does not change.
func TestShareTrees(t *testing.T) {
	keys := rapid.SampledFrom([]string{"", "metadata", "labels", "spec", "a", "b"})
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](int64(1)), rapid.Just[any](1.0), rapid.Just[any](7),
		rapid.Custom(func(t *rapid.T) any { return rapid.StringN(0, 3, -1).Draw(t, "text") }),
	)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf,
			rapid.Custom(func(t *rapid.T) any { return rapid.MapOfN(keys, value(depth-1), 0, 4).Draw(t, "map") }),
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list") }),
			rapid.Just[any](map[string]any(nil)), rapid.Just[any]([]any(nil)))
	}
	rapid.Check(t, func(t *rapid.T) {
		sharer := share.New(pool.New(), pool.Options{SharedMetadata: rapid.Bool().Draw(t, "shared")})
		var like any
		for range rapid.IntRange(1, 6).Draw(t, "objects") {
			object := rapid.MapOfN(keys, value(3), 0, 5).Draw(t, "object")
			before := show(object)
			got := sharer.ShareLike(object, like)
			like = got
			if show(object) != before {
				t.Errorf("what was given became %s, was %s", show(object), before)
			}
			if show(got) != before {
				t.Errorf("got %s, want %s", show(got), before)
			}
		}
	})
}

// BenchmarkShare: pods of ReplicaSets of ten. First is without a pool, as at the
// start; again is for the same content once more, as on a relist; apart is for
// objects that have nothing in common.
func BenchmarkShare(b *testing.B) {
	const owners, each = 50, 10
	pods := make([]any, 0, owners*each)
	untyped := make([]any, 0, owners*each)
	apart := make([]any, 0, owners*each)
	for n := range owners * each {
		pods = append(pods, somePod(fmt.Sprint("owner-", n/each), n))
		untyped = append(untyped, untypedPod(b, fmt.Sprint("owner-", n/each), n))
		apart = append(apart, somePod(fmt.Sprint("owner-", n), n))
	}
	for name, objects := range map[string][]any{"typed": pods, "unstructured": untyped, "apart": apart} {
		b.Run(name+"/first", func(b *testing.B) {
			b.ReportAllocs()
			var sharer *share.Sharer
			for n := 0; b.Loop(); n++ {
				if n%len(objects) == 0 {
					sharer = share.New(pool.New(), pool.Options{})
				}
				sharer.Share(objects[n%len(objects)])
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			b.ReportAllocs()
			sharer := share.New(pool.New(), pool.Options{})
			for n := 0; b.Loop(); n++ {
				sharer.Share(objects[n%len(objects)])
			}
		})
	}
	b.Run("concurrent", func(b *testing.B) {
		sharer := share.New(pool.New(), pool.Options{})
		b.RunParallel(func(pb *testing.PB) {
			for n := 0; pb.Next(); n++ {
				sharer.Share(pods[n%len(pods)])
			}
		})
	})
}
