package ctrlcache_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/ctrlcache"
)

// TestWritesThatFieldsLeaveOut writes objects that the cache's field selector selects by what is
// in them, and others. No event shows the others, and a bookmark comes each minute.
func TestWritesThatFieldsLeaveOut(t *testing.T) {
	secret := func(kind string) client.Object {
		return &corev1.Secret{Type: corev1.SecretType(kind)}
	}
	untyped := func(kind string) client.Object {
		u := &unstructured.Unstructured{Object: map[string]any{"type": kind}}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		return u
	}
	node := func(name string) client.Object {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "main", Image: "x"}}}}
	}
	for name, c := range map[string]struct {
		make     func(value string) client.Object
		list     client.ObjectList
		selector fields.Selector
		out, in  string
	}{
		"a value that is not wanted": {secret, &corev1.SecretList{}, fields.OneTermNotEqualSelector("type", "helm.sh/release.v1"), "helm.sh/release.v1", "mine"},
		"written in another form":    {untyped, &corev1.SecretList{}, fields.OneTermNotEqualSelector("type", "helm.sh/release.v1"), "helm.sh/release.v1", "mine"},
		"another value":              {node, &corev1.PodList{}, fields.OneTermEqualSelector("spec.nodeName", "n1"), "n2", "n1"},
		"no value":                   {node, &corev1.PodList{}, fields.OneTermEqualSelector("spec.nodeName", "n1"), "", "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				copies, err := ctrlcache.NewCache(server.Config(), cache.Options{DefaultFieldSelector: c.selector})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = copies.Start(ctx) })
				defer running.Wait()
				defer cancel()
				writer, err := ctrlcache.NewClient(server.Config(), client.Options{Cache: &client.CacheOptions{
					Reader: copies, Unstructured: true, EnableReadYourWritesConsistency: ptr.To(true),
				}})
				if err != nil || !copies.WaitForCacheSync(ctx) {
					t.Fatal(err)
				}
				x := &stage{TB: t, ctx: ctx, cache: copies}
				x.names(c.list)
				began := time.Now()
				want := []string{}
				for i, value := range []string{c.out, c.in, c.out, c.out, c.in} {
					object := c.make(value)
					object.SetNamespace("a")
					object.SetName(fmt.Sprint("o", i))
					if err := writer.Create(ctx, object); err != nil {
						t.Fatal(err)
					}
					if value == c.in {
						want = append(want, "a/"+object.GetName())
					}
					if err := writer.List(ctx, c.list); err != nil {
						t.Fatal(err)
					}
					if got := keysOf(x, c.list); !slices.Equal(got, want) {
						t.Errorf("the list shows %v, wanted %v", got, want)
					}
					object.SetAnnotations(map[string]string{"changed": "yes"})
					if err := writer.Update(ctx, object); err != nil {
						t.Fatal(err)
					}
					err := writer.Get(ctx, client.ObjectKeyFromObject(object), c.make(""))
					if (err == nil) != (value == c.in) {
						t.Errorf("the read of one with %q says %v", value, err)
					}
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("the reads waited %v", took)
				}
			})
		})
	}
}

// TestStatusThatTheServerDrops creates an object with a status that the server ignores, as for
// every kind with a status subresource. By the status of the caller the cache would not select
// the object; it does by what the server has stored.
func TestStatusThatTheServerDrops(t *testing.T) {
	x, c := deleting(t, cache.Options{DefaultFieldSelector: fields.OneTermNotEqualSelector("status.phase", "Failed")})
	x.server.mu.Lock()
	x.server.dropped = []string{"status"}
	x.server.mu.Unlock()
	p := newPod("north", "new")
	p.Status.Phase = corev1.PodFailed
	if err := c.Create(x.ctx, p); err != nil {
		t.Fatal(err)
	}
	if x.late("", func() error { return c.Get(x.ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}) }) {
		t.Error("the read did not wait")
	}
}
