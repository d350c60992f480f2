package ctrlcache_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMetadataOfFullerCopies reads metadata where whole objects are at hand, and
// counts what the server was asked for.
func TestMetadataOfFullerCopies(t *testing.T) {
	podsUnstructured := func() client.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(podKind)
		return u
	}
	for name, c := range map[string]struct {
		fuller client.Object
		opts   cache.Options
		own    bool
	}{
		"typed":               {fuller: &corev1.Pod{}},
		"unstructured":        {fuller: podsUnstructured()},
		"nothing":             {own: true},
		"no copies":           {fuller: &corev1.Pod{}, opts: cache.Options{DefaultUnsafeDisableDeepCopy: ptr.To(true)}},
		"two namespaces":      {fuller: &corev1.Pod{}, opts: twoNamespaces},
		"managed fields":      {fuller: &corev1.Pod{}, opts: cache.Options{DefaultTransform: cache.TransformStripManagedFields()}},
		"own transform":       {fuller: &corev1.Pod{}, opts: cache.Options{DefaultTransform: rename("x")}, own: true},
		"known informers":     {fuller: &corev1.Pod{}, opts: cache.Options{ReaderFailOnMissingInformer: true}},
		"another selector":    {fuller: &corev1.Pod{}, opts: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {}, emptyMetadata(podKind): {Label: label("deep")}}}, own: true},
		"the same by another": {fuller: &corev1.Pod{}, opts: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: label("deep")}, emptyMetadata(podKind): {Label: label("deep")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			x, alone := running(t, c.opts), running(t, c.opts)
			if c.fuller != nil {
				if _, err := x.cache.GetInformer(x.ctx, c.fuller); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := alone.cache.GetInformer(alone.ctx, emptyMetadata(podKind)); err != nil {
				t.Fatal(err)
			}
			for _, s := range []*stage{x, alone} {
				s.list(emptyMetadatas(podKind))
				s.list(emptyMetadatas(podKind), client.InNamespace("north"), client.MatchingLabels{"lake": "deep"}, selecting("metadata.name!=b"))
				s.get(emptyMetadata(podKind), "north", "a")
				s.get(emptyMetadata(podKind), "north", "none")
			}
			if diff := cmp.Diff(alone.seen, x.seen); diff != "" {
				t.Errorf("not what a copy of metadata shows (-copy +fuller):\n%s", diff)
			}
			if own := len(x.metadataWatches()) > 0; own != c.own {
				t.Errorf("watched for itself: %t, wanted %t; %v", own, c.own, x.server.asked(""))
			}
		})
	}
}

// metadataWatches are the requests for metadata.
func (x *stage) metadataWatches() (found []string) {
	for _, line := range x.server.asked("watch pods") {
		if len(line) > 8 && line[len(line)-8:] == "metadata" {
			found = append(found, line)
		}
	}
	return found
}

// TestMetadataIsACopy changes what was read, which must have no effect.
func TestMetadataIsACopy(t *testing.T) {
	x := running(t, cache.Options{})
	x.names(&corev1.PodList{})
	read := func() *metav1.PartialObjectMetadata {
		m := emptyMetadata(podKind)
		if err := x.cache.Get(x.ctx, podA, m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	read().Labels["lake"] = "changed"
	if got := read().Labels["lake"]; got != "deep" {
		t.Errorf("the cache was changed: %s", got)
	}
	if err := x.cache.RemoveInformer(x.ctx, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if read(); len(x.metadataWatches()) == 0 {
		t.Error("without the pods metadata must be watched for itself")
	}
}
