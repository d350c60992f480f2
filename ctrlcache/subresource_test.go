package ctrlcache_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
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
