package ctrlcache_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/ctrlcache"
)

var withoutFinalizers = client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))

// TestLastFinalizer removes the last finalizer of an object that is being deleted, which
// completes the delete. The answer is the object, with the version that it had.
func TestLastFinalizer(t *testing.T) {
	for name, remove := range map[string]func(x *stage, c client.Client, leaving *corev1.Pod) error{
		"update": func(x *stage, c client.Client, leaving *corev1.Pod) error {
			leaving.Finalizers = nil
			return c.Update(x.ctx, leaving)
		},
		"patch": func(x *stage, c client.Client, _ *corev1.Pod) error {
			return c.Patch(x.ctx, newPod("north", "a"), withoutFinalizers)
		},
		"patch of the metadata": func(x *stage, c client.Client, _ *corev1.Pod) error {
			part := emptyMetadata(podKind)
			part.Namespace, part.Name = "north", "a"
			return c.Patch(x.ctx, part, withoutFinalizers)
		},
		"apply": func(x *stage, c client.Client, _ *corev1.Pod) error {
			config := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "north", "name": "a", "finalizers": []any{}}}}
			config.SetGroupVersionKind(podKind)
			return c.Apply(x.ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner("me"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, c, leaving := aboutToGo(t)
			if err := remove(x, c, leaving); err != nil {
				t.Fatal(err)
			}
			var got corev1.Pod
			var err error
			if x.late("", func() error { err = c.Get(x.ctx, podA, &got); return nil }) {
				t.Error("the read did not wait")
			}
			if !apierrors.IsNotFound(err) {
				t.Errorf("the read shows %q with finalizers %v, error %v", got.Name, got.Finalizers, err)
			}
		})
	}
}

// aboutToGo makes a pod that only a finalizer keeps, and a copy that shows it and gets no
// more events.
func aboutToGo(t *testing.T) (*stage, client.Client, *corev1.Pod) {
	x := running(t, cache.Options{})
	c := x.client(ctrlcache.NewClient)
	if err := c.Patch(x.ctx, newPod("north", "a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["x/y"]}}`))); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(x.ctx, newPod("north", "a")); err != nil {
		t.Fatal(err)
	}
	leaving := &corev1.Pod{}
	if err := c.Get(x.ctx, podA, leaving); err != nil || leaving.DeletionTimestamp == nil {
		t.Fatal(leaving.ObjectMeta, err)
	}
	x.server.hold("")
	return x, c, leaving.DeepCopy()
}

// TestLastFinalizerInADryRun deletes nothing, so a read must not wait for a delete.
func TestLastFinalizerInADryRun(t *testing.T) {
	x, c, leaving := aboutToGo(t)
	leaving.Finalizers = nil
	if err := c.Update(x.ctx, leaving, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(x.ctx, newPod("north", "a"), withoutFinalizers, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	var got corev1.Pod
	if !x.late("", func() error { return c.Get(x.ctx, podA, &got) }) {
		t.Error("the read waited")
	}
	if len(got.Finalizers) != 1 {
		t.Errorf("the read shows the finalizers %v", got.Finalizers)
	}
}

// TestDeleteOfAnotherOfThatName deletes by an object from a copy that is behind: somebody has
// deleted that object, and made another one of the same name. The delete is of the other one.
func TestDeleteOfAnotherOfThatName(t *testing.T) {
	x, c := deleting(t, cache.Options{})
	var stale corev1.Pod
	if err := c.Get(x.ctx, podA, &stale); err != nil {
		t.Fatal(err)
	}
	x.server.remove("pods", "north", "a")
	x.server.put("pods", pod("north", "a", "n9", "Running", "deep"))
	if err := c.Delete(x.ctx, &stale); err != nil {
		t.Fatal(err)
	}
	var got corev1.Pod
	var err error
	if x.late("", func() error { err = c.Get(x.ctx, podA, &got); return nil }) {
		t.Error("the read did not wait")
	}
	if !apierrors.IsNotFound(err) {
		t.Errorf("the read shows the pod on %q, error %v", got.Spec.NodeName, err)
	}
}

// TestDeleteAllOfMany deletes as many objects as a busy namespace has. It takes a tenth of a
// second. When each object was compared with all others it took 17 s, and reads waited
// meanwhile.
func TestDeleteAllOfMany(t *testing.T) {
	const many = 3000
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	for i := range many {
		if err := api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("c", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	x := runningFor(t, api.Config(), cache.Options{})
	c, err := ctrlcache.NewClient(api.Config(), client.Options{Cache: &client.CacheOptions{
		Reader: x.cache, EnableReadYourWritesConsistency: ptr.To(true),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(x.names(&corev1.ConfigMapList{})); n != many {
		t.Fatal(n, "objects before")
	}
	began := time.Now()
	if err := c.DeleteAllOf(x.ctx, &corev1.ConfigMap{}, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	var left corev1.ConfigMapList
	if err := c.List(x.ctx, &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d are left: %v", len(left.Items), err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestDeleteAllOfWhatIsNoLongerSelected changes the label of an object while DeleteAllOf runs,
// so that the object is not deleted. Reads must not wait for its delete.
func TestDeleteAllOfWhatIsNoLongerSelected(t *testing.T) {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	labelled := func(name, value string) {
		t.Helper()
		if err := api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"is": value}}}); err != nil {
			t.Error(err)
		}
	}
	labelled("spared", "old")
	labelled("deleted", "old")
	x := runningFor(t, api.Config(), cache.Options{})
	config := api.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				labelled("spared", "new")
			}
			return next.RoundTrip(r)
		})
	})
	c, err := ctrlcache.NewClient(config, client.Options{Cache: &client.CacheOptions{
		Reader: x.cache, EnableReadYourWritesConsistency: ptr.To(true),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(x.names(&corev1.ConfigMapList{})); n != 2 {
		t.Fatal(n, "objects before")
	}
	if err := c.DeleteAllOf(x.ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"is": "old"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(x.ctx, 5*time.Second)
	defer cancel()
	var left corev1.ConfigMapList
	if err := c.List(ctx, &left); err != nil || len(left.Items) != 1 || left.Items[0].Labels["is"] != "new" {
		t.Errorf("the read shows %v: %v", left.Items, err)
	}
}
