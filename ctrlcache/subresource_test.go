package ctrlcache_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAnswersThatAreNotTheObject writes a subresource whose answer goes into the object that the
// caller passed, but is another object: a scale has the name and the version of the object, and
// neither its labels nor its fields. The cache selects the object, and does not show it yet.
func TestAnswersThatAreNotTheObject(t *testing.T) {
	scale := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))
	for name, opts := range map[string]cache.Options{
		"labels": {DefaultLabelSelector: label("deep")},
		"fields": {DefaultFieldSelector: fields.OneTermEqualSelector("spec.nodeName", "n1")},
	} {
		for what, write := range map[string]func(*stage, client.Client) error{
			"unstructured": func(x *stage, c client.Client) error {
				u := emptyLake()
				u.SetGroupVersionKind(podKind)
				u.SetNamespace("north")
				u.SetName("new")
				return c.SubResource("scale").Patch(x.ctx, u, scale)
			},
			"metadata": func(x *stage, c client.Client) error {
				return c.SubResource("scale").Patch(x.ctx, metadataPod("north", "new"), scale)
			},
			"metadata with a body that stays as it is": func(x *stage, c client.Client) error {
				return c.SubResource("scale").Patch(x.ctx, metadataPod("north", "new"), scale, client.WithSubResourceBody(metadataPod("north", "new")))
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				x, c := deleting(t, opts)
				x.server.put("pods", pod("north", "new", "n1", "Running", "deep"))
				if err := write(x, c); err != nil {
					t.Fatal(err)
				}
				if x.late("", func() error { return c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "new"}, &corev1.Pod{}) }) {
					t.Error("the read did not wait")
				}
			})
		}
	}
}

// TestAppliesOutsideTheSelectors applies to an object that the cache does not select. Reads must
// not wait for it: no event comes, and they would wait for a bookmark.
func TestAppliesOutsideTheSelectors(t *testing.T) {
	for name, opts := range map[string]cache.Options{
		"labels": {DefaultLabelSelector: label("deep")},
		"fields": {DefaultFieldSelector: fields.OneTermEqualSelector("spec.nodeName", "n1")},
	} {
		for what, config := range map[string]func() runtime.ApplyConfiguration{
			"typed": func() runtime.ApplyConfiguration {
				return corev1ac.Pod("outside", "north").WithAnnotations(map[string]string{"x": "y"})
			},
			"unstructured": func() runtime.ApplyConfiguration {
				u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "outside", "namespace": "north"}}}
				u.SetGroupVersionKind(podKind)
				return client.ApplyConfigurationFromUnstructured(u)
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				x, c := deleting(t, opts)
				x.server.put("pods", pod("north", "outside", "n2", "Running", "shallow"))
				if err := c.Apply(x.ctx, config(), client.FieldOwner("me")); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(x.ctx, 2*time.Second)
				defer cancel()
				if err := c.List(ctx, &corev1.PodList{}); err != nil {
					t.Errorf("a list of others: %v", err)
				}
			})
		}
	}
}

// TestWhatWasAppliedIsNotTheAnswer applies labels and a status that the server drops. By them
// the cache would not select the object; it does by what the server has stored.
func TestWhatWasAppliedIsNotTheAnswer(t *testing.T) {
	for name, opts := range map[string]cache.Options{
		"labels": {DefaultLabelSelector: parsed(t, "lake!=shallow")},
		"fields": {DefaultFieldSelector: fields.OneTermNotEqualSelector("status.phase", "Failed")},
	} {
		t.Run(name, func(t *testing.T) {
			x, c := deleting(t, opts)
			x.server.put("pods", object("north", "new", nil))
			x.server.mu.Lock()
			x.server.dropped = []string{"status", "labels"}
			x.server.mu.Unlock()
			config := corev1ac.Pod("new", "north").WithLabels(map[string]string{"lake": "shallow"}).WithStatus(corev1ac.PodStatus().WithPhase(corev1.PodFailed))
			if err := c.Apply(x.ctx, config, client.FieldOwner("me")); err != nil {
				t.Fatal(err)
			}
			if x.late("", func() error { return c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "new"}, &corev1.Pod{}) }) {
				t.Error("the read did not wait")
			}
		})
	}
}
