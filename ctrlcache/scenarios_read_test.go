package ctrlcache_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func byNode(o client.Object) []string  { return []string{o.(*corev1.Pod).Spec.NodeName} }
func byPhase(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} }

func TestReading(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"get in every form": {play: func(x *stage) {
			x.get(&corev1.Pod{}, "north", "a")
			x.get(&corev1.Node{}, "", "n1")
			x.get(&corev1.Node{}, "ignored", "n1")
			x.get(emptyLake(), "north", "baikal")
			x.get(emptyMetadata(podKind), "south", "c")
		}},
		"list in every form": {play: func(x *stage) {
			x.list(&corev1.PodList{})
			x.list(&corev1.PodList{}, client.InNamespace("south"))
			x.list(&corev1.NodeList{})
			x.list(&corev1.NodeList{}, client.InNamespace("north"))
			x.list(emptyLakes())
			x.list(emptyMetadatas(podKind), client.InNamespace("north"))
			x.list(&corev1.PodList{}, client.InNamespace("nowhere"))
		}},
		"not there": {play: func(x *stage) {
			x.get(&corev1.Pod{}, "north", "none")
			x.get(&corev1.Pod{}, "", "a")
			x.get(emptyLake(), "north", "none")
			x.get(emptyMetadata(podKind), "north", "none")
			x.get(&corev1.Node{}, "", "none")
		}},
		"kinds that cannot be": {play: func(x *stage) {
			x.get(&corev1.Secret{}, "north", "a")
			x.get(&unstructured.Unstructured{}, "north", "a")
			x.get(emptyMetadata(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Unknown"}), "north", "a")
			x.list(&unstructured.UnstructuredList{})
			_, err := x.cache.GetInformerForKind(x.ctx, lakeKind)
			x.note("informer for an unregistered kind: %s", classify(err))
			_, err = x.cache.GetInformer(x.ctx, &corev1.Secret{})
			x.note("informer for a kind not served: %s", classify(err))
			for _, name := range []string{"PodList", "NodeList", "SecretList", "Status"} {
				_, err = x.cache.GetInformerForKind(x.ctx, podKind.GroupVersion().WithKind(name))
				x.note("informer for %s: %s", name, classify(err))
			}
		}},
		"kinds that have no list": {
			options: func() cache.Options {
				mapper := meta.NewDefaultRESTMapper(nil)
				mapper.Add(podKind.GroupVersion().WithKind("Binding"), meta.RESTScopeNamespace)
				return cache.Options{Mapper: mapper}
			},
			play: func(x *stage) {
				ctx, cancel := context.WithTimeout(x.ctx, 5*time.Second)
				defer cancel()
				_, err := x.cache.GetInformerForKind(ctx, podKind.GroupVersion().WithKind("Binding"))
				x.note("informer of the kind: %s", classify(err))
				_, err = x.cache.GetInformer(ctx, &corev1.Binding{})
				x.note("informer: %s", classify(err))
				x.note("get: %s", classify(x.cache.Get(ctx, podA, &corev1.Binding{})))
			},
		},
		"labels": {play: func(x *stage) {
			x.list(&corev1.PodList{}, client.MatchingLabels{"lake": "deep"})
			x.list(&corev1.PodList{}, client.MatchingLabels{"lake": "deep"}, client.InNamespace("north"))
			x.list(&corev1.PodList{}, client.HasLabels{"lake"})
			x.list(emptyMetadatas(podKind), client.MatchingLabels{"lake": "shallow"})
			x.list(&corev1.PodList{}, client.MatchingLabelsSelector{Selector: labels.Nothing()})
		}},
		"limit and continue": {play: func(x *stage) {
			var pods corev1.PodList
			err := x.cache.List(x.ctx, &pods, client.Limit(2))
			x.note("%d of 5, %s, %s", len(pods.Items), classify(err), pods.Continue)
			err = x.cache.List(x.ctx, &pods, client.Limit(1), client.MatchingLabels{"lake": "shallow"})
			x.note("%d of 1, %s, %s", len(pods.Items), classify(err), pods.Items[0].Name)
			x.list(&corev1.PodList{}, client.Continue("token"))
		}},
		"indexes": {
			before: func(x *stage) {
				x.note("index %s", classify(x.cache.IndexField(x.ctx, &corev1.Pod{}, "spec.nodeName", byNode)))
				x.note("again %s", classify(x.cache.IndexField(x.ctx, &corev1.Pod{}, "spec.nodeName", byNode)))
			},
			play: func(x *stage) {
				x.list(&corev1.PodList{}, client.MatchingFields{"spec.nodeName": "n1"})
				x.list(&corev1.PodList{}, client.MatchingFields{"spec.nodeName": "n1"}, client.InNamespace("south"))
				x.list(&corev1.PodList{}, client.MatchingFields{"spec.nodeName": "none"})
				x.note("late %s", classify(x.cache.IndexField(x.ctx, &corev1.Pod{}, "phase", byPhase)))
				x.list(&corev1.PodList{}, client.MatchingFields{"phase": "Running"})
				x.list(&corev1.PodList{}, client.MatchingFields{"phase": "Pending", "spec.nodeName": "n1"})
				x.list(&corev1.PodList{}, client.MatchingFields{"phase": "Pending", "spec.nodeName": "n2"}, client.InNamespace("south"))
				x.list(&corev1.PodList{}, client.MatchingFields{"phase": "Pending"}, client.MatchingLabels{"lake": "deep"}, client.Limit(1))
				x.note("node %s", classify(x.cache.IndexField(x.ctx, &corev1.Node{}, "self", func(o client.Object) []string { return []string{o.GetName(), "any"} })))
				x.list(&corev1.NodeList{}, client.MatchingFields{"self": "any"})
			},
		},
		"copies": {play: func(x *stage) {
			var one, two corev1.Pod
			key := client.ObjectKey{Namespace: "north", Name: "a"}
			for range 2 {
				if err := x.cache.Get(x.ctx, key, &one); err != nil {
					x.Error(err)
				}
				one.Labels["lake"] = "changed"
				var pods corev1.PodList
				if err := x.cache.List(x.ctx, &pods); err != nil {
					x.Error(err)
				}
				for i := range pods.Items {
					pods.Items[i].Spec.NodeName = "changed"
				}
			}
			x.get(&two, "north", "a")
		}},
		"without copies": {
			options: func() cache.Options {
				return cache.Options{DefaultUnsafeDisableDeepCopy: ptr.To(true), ByObject: map[client.Object]cache.ByObject{
					emptyLake(): {UnsafeDisableDeepCopy: ptr.To(false)},
				}}
			},
			play: func(x *stage) {
				x.get(&corev1.Pod{}, "north", "a")
				x.list(&corev1.PodList{}, client.InNamespace("north"))
				x.get(emptyLake(), "north", "baikal")
				x.get(emptyMetadata(podKind), "south", "c")
				x.note("same labels: %t, same lake: %t", sameLabels(x, &corev1.Pod{}, &corev1.Pod{}), sameSpec(x))
			},
		},
		"without copies for one read": {play: func(x *stage) {
			x.get(&corev1.Pod{}, "north", "a", client.UnsafeDisableDeepCopy)
			x.list(&corev1.PodList{}, client.UnsafeDisableDeepCopy, client.InNamespace("north"))
			x.note("same labels: %t", sameLabels(x, &corev1.Pod{}, &corev1.Pod{}))
			x.note("same labels: %t", sameLabels(x, &corev1.Pod{}, &corev1.Pod{}, client.UnsafeDisableDeepCopy))
		}},
		"only known informers": {
			options: func() cache.Options { return cache.Options{ReaderFailOnMissingInformer: true} },
			play: func(x *stage) {
				x.get(&corev1.Pod{}, "north", "a")
				x.list(&corev1.PodList{})
				x.get(emptyLake(), "north", "baikal")
				_, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
				x.note("informer: %s", classify(err))
				x.get(&corev1.Pod{}, "north", "a")
				x.get(emptyLake(), "north", "baikal")
			},
		},
		"only known informers of kinds that are not served": {
			options: func() cache.Options { return cache.Options{ReaderFailOnMissingInformer: true} },
			play: func(x *stage) {
				x.get(&corev1.Secret{}, "north", "a")
				x.list(&corev1.SecretList{})
				x.get(emptyMetadata(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Unknown"}), "north", "a")
			},
		},
		"only known informers of some namespaces": {
			options: func() cache.Options {
				o := twoNamespaces
				o.ReaderFailOnMissingInformer = true
				return o
			},
			play: func(x *stage) {
				x.get(&corev1.Secret{}, "north", "a")
				x.get(&corev1.Pod{}, "north", "a")
				x.get(&corev1.Pod{}, "west", "d")
				x.get(&corev1.Node{}, "", "n1")
			},
		},
		"indexes that have the name of a field": {
			before: func(x *stage) {
				x.note("index %s", classify(x.cache.IndexField(x.ctx, &corev1.Pod{}, "metadata.name", func(o client.Object) []string {
					return []string{"pod-" + o.GetName()}
				})))
				x.note("index %s", classify(x.cache.IndexField(x.ctx, &corev1.Pod{}, "metadata.namespace", func(o client.Object) []string {
					return []string{"the " + o.GetNamespace()}
				})))
			},
			play: func(x *stage) {
				x.list(&corev1.PodList{}, client.MatchingFields{"metadata.name": "pod-a"})
				x.list(&corev1.PodList{}, client.MatchingFields{"metadata.name": "pod-a"}, client.InNamespace("south"))
				x.list(&corev1.PodList{}, client.MatchingFields{"metadata.name": "a"}, client.InNamespace("south"))
				x.list(&corev1.PodList{}, client.MatchingFields{"metadata.namespace": "the south"})
				x.list(&corev1.PodList{}, client.MatchingFields{"metadata.name": "pod-a", "metadata.namespace": "the south"})
			},
		},
		"selectors of the cache": {
			options: func() cache.Options {
				return cache.Options{
					DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"lake": "deep"}),
					ByObject: map[client.Object]cache.ByObject{
						&corev1.Node{}: {Label: labels.Everything(), Field: fields.OneTermEqualSelector("metadata.name", "n1")},
						emptyLake():    {Label: labels.Everything(), Field: fields.OneTermEqualSelector("metadata.namespace", "south")},
					},
				}
			},
			play: func(x *stage) {
				x.list(&corev1.PodList{})
				x.list(&corev1.NodeList{})
				x.list(emptyLakes())
				x.get(&corev1.Pod{}, "south", "c")
				x.note("%q", x.server.asked("watch"))
			},
		},
	})
}

// sameLabels says whether two reads give the same map.
func sameLabels(x *stage, a, b client.Object, opts ...client.GetOption) bool {
	key := client.ObjectKey{Namespace: "north", Name: "a"}
	if err := x.cache.Get(x.ctx, key, a, opts...); err != nil {
		x.Error(err)
	}
	if err := x.cache.Get(x.ctx, key, b, opts...); err != nil {
		x.Error(err)
	}
	before := b.GetLabels()["probe"]
	a.GetLabels()["probe"] = before + "x"
	defer delete(a.GetLabels(), "probe")
	return b.GetLabels()["probe"] == before+"x"
}

func sameSpec(x *stage) bool {
	a, b := emptyLake(), emptyLake()
	key := client.ObjectKey{Namespace: "north", Name: "baikal"}
	if err := x.cache.Get(x.ctx, key, a); err != nil {
		x.Error(err)
	}
	a.Object["spec"].(map[string]any)["depth"] = "changed"
	if err := x.cache.Get(x.ctx, key, b); err != nil {
		x.Error(err)
	}
	return b.Object["spec"].(map[string]any)["depth"] == "changed"
}
