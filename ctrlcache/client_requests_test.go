package ctrlcache_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/ctrlcache"
)

// bareClient is a client over the stage's cache whose config and options have nothing that
// is not needed.
func (x *stage) bareClient(newClient client.NewClientFunc, consistent bool) client.Client {
	cfg := x.server.config()
	cfg.ContentType = "application/json"
	c, err := newClient(cfg, client.Options{Mapper: newMapper(), Cache: &client.CacheOptions{
		Reader: x.cache, EnableReadYourWritesConsistency: ptr.To(consistent),
	}})
	if err != nil {
		x.Fatal(err)
	}
	return c
}

// TestWritesLookAsBefore compares what a server and a log see of each write with
// controller-runtime's client: the name of the program, and where warnings go.
func TestWritesLookAsBefore(t *testing.T) {
	writes := map[string]func(context.Context, client.Client) error{
		"create": func(ctx context.Context, c client.Client) error { return c.Create(ctx, newPod("north", "new")) },
		"patch": func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, newPod("north", "a"), client.RawPatch("application/merge-patch+json", []byte(`{}`)))
		},
		"delete": func(ctx context.Context, c client.Client) error { return c.Delete(ctx, newPod("north", "a")) },
		"delete of an unstructured object": func(ctx context.Context, c client.Client) error {
			u := emptyLake()
			u.SetNamespace("north")
			u.SetName("baikal")
			return c.Delete(ctx, u)
		},
		"delete of all": func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("north"))
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			play := func(newClient client.NewClientFunc, consistent bool) (seen []string) {
				x := running(t, cache.Options{})
				c := x.bareClient(newClient, consistent)
				x.server.mu.Lock()
				x.server.warn = func(r *http.Request) string {
					if r.Method == http.MethodGet {
						return ""
					}
					seen = append(seen, fmt.Sprint(r.Method, " ", r.URL, " by ", r.UserAgent()))
					return "299 - \"this goes away\""
				}
				x.server.mu.Unlock()
				log := funcr.New(func(_, args string) { seen = append(seen, "log: "+args) }, funcr.Options{})
				if err := write(logr.NewContext(x.ctx, log), c); err != nil {
					t.Error(err)
				}
				x.server.mu.Lock()
				defer x.server.mu.Unlock()
				return slices.Clone(seen)
			}
			theirs := play(client.New, false)
			if diff := cmp.Diff(theirs, play(ctrlcache.NewClient, true)); diff != "" {
				t.Errorf("-controller-runtime +ours\n%s", diff)
			}
			if !strings.Contains(fmt.Sprint(theirs), "goes away") {
				t.Errorf("the log shows no warning: %v", theirs)
			}
		})
	}
}

// TestClientWithoutConfig must return an error, as [client.New] does.
func TestClientWithoutConfig(t *testing.T) {
	x := running(t, cache.Options{})
	options := client.Options{Cache: &client.CacheOptions{Reader: x.cache, EnableReadYourWritesConsistency: ptr.To(true)}}
	_, theirs := client.New(nil, options)
	_, ours := ctrlcache.NewClient(nil, options)
	if theirs == nil || ours == nil || ours.Error() != theirs.Error() {
		t.Errorf("ours says %v, controller-runtime %v", ours, theirs)
	}
}

// TestDeleteWithoutNamespace must not be taken for the delete of an object that is gone,
// which callers ignore.
func TestDeleteWithoutNamespace(t *testing.T) {
	for what, p := range map[string]*corev1.Pod{"namespace": newPod("", "a"), "name": newPod("north", "")} {
		x := running(t, cache.Options{})
		theirs := x.bareClient(client.New, false).Delete(x.ctx, p.DeepCopy())
		ours := x.bareClient(ctrlcache.NewClient, true).Delete(x.ctx, p.DeepCopy())
		if theirs == nil || ours == nil || ours.Error() != theirs.Error() || apierrors.IsNotFound(ours) {
			t.Errorf("without %s, ours says %v, controller-runtime %v", what, ours, theirs)
		}
	}
}

// TestNamespaceOfWhatHasNone writes cluster-scoped objects that have a namespace set, as
// by code that sets one on all its objects. Requests leave it out, and reads too.
func TestNamespaceOfWhatHasNone(t *testing.T) {
	node := func() *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "north", Name: "n1"}}
	}
	for what, write := range map[string]func(context.Context, client.Client) error{
		"delete": func(ctx context.Context, c client.Client) error { return c.Delete(ctx, node()) },
		"patch": func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, node(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"podCIDR":"x"}}`)))
		},
		"apply": func(ctx context.Context, c client.Client) error {
			config := corev1ac.Node("n1").WithSpec(corev1ac.NodeSpec().WithPodCIDR("x"))
			config.WithNamespace("north")
			return c.Apply(ctx, config, client.FieldOwner("me"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			x := running(t, cache.Options{})
			c := x.bareClient(ctrlcache.NewClient, true)
			if err := c.List(x.ctx, &corev1.NodeList{}); err != nil {
				t.Fatal(err)
			}
			x.server.hold("")
			if err := write(x.ctx, c); err != nil {
				t.Fatal(err)
			}
			var got corev1.Node
			var err error
			if x.late("", func() error {
				err = c.Get(x.ctx, client.ObjectKeyFromObject(node()), &got)
				return client.IgnoreNotFound(err)
			}) {
				t.Error("the read did not wait for the write")
			}
			if gone := apierrors.IsNotFound(err); gone != (what == "delete") || !gone && got.Spec.PodCIDR != "x" {
				t.Errorf("the read shows %q, %v", got.Spec.PodCIDR, err)
			}
		})
	}
}

// TestDeleteAllOfWithoutList deletes objects that the program may not list.
func TestDeleteAllOfWithoutList(t *testing.T) {
	x := running(t, cache.Options{})
	c := x.bareClient(ctrlcache.NewClient, true)
	x.server.mu.Lock()
	x.server.refuse = func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			return http.StatusForbidden, "no"
		}
		return 0, ""
	}
	x.server.mu.Unlock()
	if err := c.DeleteAllOf(x.ctx, &corev1.ConfigMap{}, client.InNamespace("north")); err != nil {
		t.Error(err)
	}
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	if left := x.server.of("configmaps"); len(left) > 0 {
		t.Errorf("%d are left", len(left))
	}
}
