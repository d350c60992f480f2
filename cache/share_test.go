package cache

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn"
)

// tolerant is a pod with parts that others have too.
func tolerant(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1", Labels: map[string]string{"app": "heron"}},
		Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{
			{Key: "cold", Value: "very"}, {Key: "wet", Value: "always"},
		}},
	}
}

// heldBy runs an informer over a watch that adds two pods, and returns what was
// given and what the store has.
func heldBy(t *testing.T, make func(ListerWatcher) SharedIndexInformer) (given, held [2]*corev1.Pod) {
	fake := watch.NewFake()
	informer := make(&ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, apierrors.NewBadRequest("no initial events here")
			}
			return fake, nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := run(ctx, informer)
	WaitForCacheSync(ctx.Done(), informer.HasSynced)
	for i := range given {
		given[i] = tolerant(fmt.Sprint("p", i))
		fake.Add(given[i])
	}
	synctest.Wait()
	for i := range held {
		object, _, _ := informer.GetStore().GetByKey(fmt.Sprint("ns/p", i))
		held[i] = object.(*corev1.Pod)
	}
	cancel()
	<-done
	return given, held
}

func run(ctx context.Context, informer SharedInformer) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	return done
}

func sameTolerations(pods [2]*corev1.Pod) bool {
	return &pods[0].Spec.Tolerations[0] == &pods[1].Spec.Tolerations[0]
}

func TestInformersShare(t *testing.T) {
	listWatchOnly := func(lw ListerWatcher) SharedIndexInformer {
		return NewSharedIndexInformer(lw, &corev1.Pod{}, 0, Indexers{})
	}
	for name, c := range map[string]struct {
		make   func(ListerWatcher) SharedIndexInformer
		shares bool
	}{
		"by default": {listWatchOnly, true},
		"turned off": {func(lw ListerWatcher) SharedIndexInformer {
			informer := listWatchOnly(lw)
			must(ShareStructure(typed[*corev1.Pod](informer), false))
			return informer
		}, false},
		"turned off and on": {func(lw ListerWatcher) SharedIndexInformer {
			informer := listWatchOnly(lw)
			must(ShareStructure(informer, false))
			must(ShareStructure(informer, true))
			return informer
		}, true},
		"with a detector": {func(lw ListerWatcher) SharedIndexInformer {
			informer := listWatchOnly(lw)
			must(DetectMutations(informer, func(MutationReport) {}))
			return informer
		}, false},
		"from a source": {func(lw ListerWatcher) SharedIndexInformer {
			return NewSharedIndexInformerFromSource(newSource(lw, &corev1.Pod{}, "pods"), &corev1.Pod{}, SharedIndexInformerOptions{}, false)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				given, held := heldBy(t, c.make)
				for i := range given {
					if want := tolerant(given[i].Name); !reflect.DeepEqual(given[i], want) || !reflect.DeepEqual(held[i], want) {
						t.Errorf("given %v, held %v, want %v", given[i], held[i], want)
					}
					if !c.shares && held[i] != given[i] {
						t.Error("what is held is not what was given")
					}
				}
				if got := sameTolerations(held); got != c.shares {
					t.Errorf("shared: %v", got)
				}
				held[0].Labels["app"] = "changed"
				if held[1].Labels["app"] != "heron" {
					t.Error("labels are shared")
				}
			})
		})
	}
}

// TestTransformThenShare: a transform may change the object that it is given, and
// what it makes of it is shared.
func TestTransformThenShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []*corev1.Pod
		given, held := heldBy(t, func(lw ListerWatcher) SharedIndexInformer {
			informer := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, Indexers{})
			must(informer.SetTransform(func(object any) (any, error) {
				seen = append(seen, object.(*corev1.Pod))
				object.(*corev1.Pod).Spec.Tolerations[0].Value = "transformed"
				return object, nil
			}))
			return informer
		})
		if len(seen) != 2 || seen[0] != given[0] || seen[1] != given[1] {
			t.Error("the transform was not given what the source gave")
		}
		if !sameTolerations(held) || held[1].Spec.Tolerations[0].Value != "transformed" {
			t.Errorf("not shared, or not transformed: %v", held[1].Spec.Tolerations)
		}
	})
}

// sharingSource is a source that shares by itself, and records its calls.
type sharingSource struct {
	*source
	told []bool
}

func (s *sharingSource) ShareParts(on bool) { s.told = append(s.told, on) }

// TestSharingSources: a source that can share gets the setting; one that does not
// keeps what it gave when a transform changes it.
func TestSharingSources(t *testing.T) {
	transform := func(object any) (any, error) {
		object.(*corev1.Pod).Spec.Tolerations[0].Value = "transformed"
		return object, nil
	}
	for name, c := range map[string]struct {
		sharing, transform bool
		told               []bool
		shared, givenKept  bool
	}{
		"sharing":                {sharing: true, told: []bool{true}, givenKept: true},
		"sharing, and transform": {sharing: true, transform: true, told: []bool{false}, shared: true},
		"transform":              {transform: true, shared: true, givenKept: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told *sharingSource
				given, held := heldBy(t, func(lw ListerWatcher) SharedIndexInformer {
					told = &sharingSource{source: newSource(lw, &corev1.Pod{}, "pods")}
					var src tarn.Source[any] = told.source
					if c.sharing {
						src = told
					}
					informer := NewSharedIndexInformerFromSource(src, &corev1.Pod{}, SharedIndexInformerOptions{}, false)
					if c.transform {
						must(informer.SetTransform(transform))
					}
					return informer
				})
				if !reflect.DeepEqual(told.told, c.told) {
					t.Errorf("the source was told %v", told.told)
				}
				if sameTolerations(held) != c.shared {
					t.Errorf("shared by the informer: %v", !c.shared)
				}
				if kept := given[0].Spec.Tolerations[0].Value == "very"; kept != c.givenKept {
					t.Errorf("the source's object is as it was: %v", kept)
				}
			})
		})
	}
}

func TestShareStructureRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nobody SharedInformer
		for name, informer := range map[string]SharedInformer{
			"nil":         nobody,
			"client-go's": upstream.NewSharedIndexInformer(&ListWatch{}, &corev1.Pod{}, 0, Indexers{}),
		} {
			if err := ShareStructure(informer, false); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		informer := NewSharedIndexInformer(onePod(t), &corev1.Pod{}, 0, Indexers{})
		ctx, cancel := context.WithCancel(t.Context())
		done := run(ctx, informer)
		synctest.Wait()
		if err := ShareStructure(informer, false); err == nil || !strings.Contains(err.Error(), "started") {
			t.Errorf("after the start: %v", err)
		}
		cancel()
		<-done
	})
}
