package ctrlcache_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/ctrlcache"
)

func keysOf(x *stage, list client.ObjectList) []string {
	items, err := meta.ExtractList(list)
	if err != nil {
		x.Fatal(err)
	}
	keys := []string{}
	for _, item := range items {
		o := item.(client.Object)
		keys = append(keys, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	}
	slices.Sort(keys)
	return keys
}

// clients are those that read their own writes: ours, and controller-runtime's
// over our cache.
var clients = map[string]client.NewClientFunc{"our client": ctrlcache.NewClient, "controller-runtime's client": client.New}

func (x *stage) client(newClient client.NewClientFunc) client.Client {
	cfg := x.server.config()
	cfg.ContentType = "application/json" // of what is sent; the server reads nothing else
	c, err := newClient(cfg, client.Options{Mapper: newMapper(), Cache: &client.CacheOptions{
		Reader: x.cache, Unstructured: true, EnableReadYourWritesConsistency: ptr.To(true),
	}})
	if err != nil {
		x.Fatal(err)
	}
	return c
}

var twoNamespaces = cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}, "south": {}}}

func newPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{NodeName: "n5"}}
}

// late runs a read while the watches of a namespace are held, and reports whether
// it ended before they were released.
func (x *stage) late(namespace string, read func() error) (early bool) {
	x.Helper()
	done := make(chan error, 1)
	go func() { done <- read() }()
	select {
	case err := <-done:
		if err != nil {
			x.Error(err)
		}
		early = true
		x.server.release(namespace)
	case <-time.After(60 * time.Millisecond):
		x.server.release(namespace)
		if err := <-done; err != nil {
			x.Error(err)
		}
	}
	return early
}

// TestReadYourWrites writes in a namespace whose watch is held back, while another
// namespace moves on: the read must wait for its own, and the other must not end the wait.
func TestReadYourWrites(t *testing.T) {
	for name, newClient := range clients {
		for what, write := range map[string]func(*stage, client.Client) error{
			"create": func(x *stage, c client.Client) error { return c.Create(x.ctx, newPod("north", "new")) },
			"update": func(x *stage, c client.Client) error {
				p := newPod("north", "a")
				return c.Update(x.ctx, p)
			},
			"patch": func(x *stage, c client.Client) error {
				return c.Patch(x.ctx, newPod("north", "a"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"nodeName":"n5"}}`)))
			},
			"apply": func(x *stage, c client.Client) error {
				return c.Apply(x.ctx, corev1ac.Pod("a", "north").WithSpec(corev1ac.PodSpec().WithNodeName("n5")), client.FieldOwner("me"))
			},
			"status": func(x *stage, c client.Client) error { return c.Status().Update(x.ctx, newPod("north", "a")) },
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				x := running(t, twoNamespaces)
				c := x.client(newClient)
				x.names(&corev1.PodList{}) // the informers are there
				if err := c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "a"}, &corev1.Pod{}); err != nil {
					t.Fatal(err)
				}
				x.server.hold("north")
				if err := write(x, c); err != nil {
					t.Fatal(err)
				}
				version := x.server.put("pods", pod("south", "other", "n1", "Running", ""))
				x.awaitVersion("south", "other", version)
				x.server.remove("pods", "south", "other")
				x.until("its deletion", func() bool {
					key := client.ObjectKey{Namespace: "south", Name: "other"}
					return apierrors.IsNotFound(x.cache.Get(x.ctx, key, &corev1.Pod{}, client.DisableReadYourWritesConsistency))
				})
				var got corev1.PodList
				if x.late("north", func() error { return c.List(x.ctx, &got, client.InNamespace("north")) }) {
					t.Error("the list did not wait for the write")
				}
				if i := slices.IndexFunc(got.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "n5" }); i < 0 {
					t.Errorf("the list does not show the write: %v", keysOf(x, &got))
				}
			})
		}
	}
}

// awaitVersion waits until the cache shows an object at a version, as a read does
// that waits for nothing.
func (x *stage) awaitVersion(namespace, name, version string) {
	x.Helper()
	x.until(namespace+"/"+name, func() bool {
		var p corev1.Pod
		err := x.cache.Get(x.ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p, client.DisableReadYourWritesConsistency)
		return err == nil && p.ResourceVersion == version
	})
}

// TestReadYourWritesInAQuietNamespace reads where nothing else happens: the others'
// silence must not delay it.
func TestReadYourWritesInAQuietNamespace(t *testing.T) {
	for name, newClient := range clients {
		t.Run(name, func(t *testing.T) {
			x := running(t, twoNamespaces)
			c := x.client(newClient)
			for range 3 {
				p := newPod("north", "")
				p.GenerateName = "made-"
				if err := c.Create(x.ctx, p); err != nil {
					t.Fatal(err)
				}
				if err := c.Get(x.ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}); err != nil {
					t.Errorf("after its creation: %v", err)
				}
			}
			compared := len(x.server.asked("list pods in=south metadata")) > 0
			if want := name != "our client"; compared != want {
				t.Errorf("the quiet namespace was compared with the server: %t, wanted %t", compared, want)
			}
		})
	}
}

func TestReadYourDeletes(t *testing.T) {
	for name, newClient := range clients {
		for what, delete := range map[string]func(*stage, client.Client) error{
			"of a known object": func(x *stage, c client.Client) error {
				var p corev1.Pod
				if err := x.cache.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "a"}, &p, client.DisableReadYourWritesConsistency); err != nil {
					return err
				}
				return c.Delete(x.ctx, &p)
			},
			"by name":     func(x *stage, c client.Client) error { return c.Delete(x.ctx, newPod("north", "a")) },
			"of metadata": func(x *stage, c client.Client) error { return c.Delete(x.ctx, metadataPod("north", "a")) },
		} {
			if what == "of metadata" && name != "our client" {
				continue // there a write is waited for in its own form only
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				x := running(t, twoNamespaces)
				c := x.client(newClient)
				x.names(&corev1.PodList{})
				x.server.hold("north")
				if err := delete(x, c); err != nil {
					t.Fatal(err)
				}
				var err error
				read := func() error {
					err = c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "a"}, &corev1.Pod{})
					return client.IgnoreNotFound(err)
				}
				if x.late("north", read) {
					t.Error("the read did not wait for the deletion")
				}
				if !apierrors.IsNotFound(err) {
					t.Errorf("deleted, but read as: %v", err)
				}
			})
		}
	}
}

func metadataPod(namespace, name string) *metav1.PartialObjectMetadata {
	m := emptyMetadata(podKind)
	m.Namespace, m.Name = namespace, name
	return m
}

// TestBookmarksEndWaits writes an object that the cache does not select: no event
// shows it, and only the version advances.
func TestBookmarksEndWaits(t *testing.T) {
	x := running(t, cache.Options{DefaultLabelSelector: label("deep")})
	c := x.client(client.New)
	if err := c.Create(x.ctx, newPod("north", "outside")); err != nil {
		t.Fatal(err)
	}
	x.server.mark("pods")
	if err := c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "outside"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is not selected was read with: %v", err)
	}
}

// TestReadYourWritesGivesUp returns the reason when the context ends first.
func TestReadYourWritesGivesUp(t *testing.T) {
	x := running(t, cache.Options{})
	c := x.client(ctrlcache.NewClient)
	x.names(&corev1.PodList{})
	x.server.hold("")
	if err := c.Create(x.ctx, newPod("north", "new")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(x.ctx, 20*time.Millisecond)
	defer cancel()
	err := c.Get(ctx, client.ObjectKey{Namespace: "north", Name: "new"}, &corev1.Pod{})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "own writes") {
		t.Errorf("the read gave up with: %v", err)
	}
	// A controller with a ReconciliationTimeout gives its reconcilers such a context.
	cause := errors.New("the reconciliation took too long")
	caused, cancelCaused := context.WithTimeoutCause(x.ctx, 20*time.Millisecond, cause)
	defer cancelCaused()
	for what, err := range map[string]error{
		"read": c.Get(caused, client.ObjectKey{Namespace: "north", Name: "new"}, &corev1.Pod{}),
		"list": c.List(caused, &corev1.PodList{}),
	} {
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cause) {
			t.Errorf("with a cause, the %s gave up with: %v", what, err)
		}
	}
	if err := c.Get(x.ctx, client.ObjectKey{Namespace: "south", Name: "a"}, &corev1.Pod{}); err != nil {
		t.Errorf("another key waited: %v", err)
	}
	if err := c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "a"}, &corev1.Pod{}, client.DisableReadYourWritesConsistency); err != nil {
		t.Errorf("a read that does not want to wait: %v", err)
	}
}
