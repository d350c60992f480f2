package cache_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
)

// aviary is a source of its own kind: what it holds never changes.
type aviary struct{ birds []any }

func (a aviary) List(context.Context, tarn.ListQuery) (tarn.Page[any], error) {
	return tarn.Page[any]{Items: a.birds, Version: "1"}, nil
}

func (aviary) Watch(context.Context, tarn.WatchQuery) (tarn.Stream[any], error) { return quiet{}, nil }

func (aviary) Describe(object any) (tarn.Meta, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return tarn.Meta{}, fmt.Errorf("%T is no pod", object)
	}
	return tarn.Meta{Key: tarn.Key(p.Namespace + "/" + p.Name), Version: "1"}, nil
}

// quiet is a stream in which nothing happens.
type quiet struct{}

func (quiet) Close() {}

func (quiet) Next(ctx context.Context, _ []tarn.Event[any]) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// An informer of something other than the Kubernetes API: handlers, indexes and
// listers work as with any other.
func ExampleNewSharedIndexInformerFromSource() {
	source := aviary{birds: []any{pod("heron", "north"), pod("teal", "south")}}
	informer := cache.NewSharedIndexInformerFromSource(source, &corev1.Pod{}, cache.SharedIndexInformerOptions{}, false)
	defer running(informer)()
	cache.WaitForCacheSync(context.Background().Done(), informer.HasSynced)
	fmt.Println(len(informer.GetStore().ListKeys()), "birds")

	// Output: 2 birds
}

// Pods with the same tolerations hold them once by default.
func ExampleShareStructure() {
	birds := func() aviary {
		heron, teal := pod("heron", "north"), pod("teal", "south")
		for _, bird := range []*corev1.Pod{heron, teal} {
			bird.Spec.Tolerations = []corev1.Toleration{{Key: "wet", Value: "always"}}
		}
		return aviary{birds: []any{heron, teal}}
	}
	for _, on := range []bool{true, false} {
		informer := cache.NewSharedIndexInformerFromSource(birds(), &corev1.Pod{}, cache.SharedIndexInformerOptions{}, false)
		if err := cache.ShareStructure(informer, on); err != nil {
			fmt.Println(err)
		}
		stop := running(informer)
		cache.WaitForCacheSync(context.Background().Done(), informer.HasSynced)
		heron, _, _ := informer.GetStore().GetByKey("lake/heron")
		teal, _, _ := informer.GetStore().GetByKey("lake/teal")
		fmt.Println(&heron.(*corev1.Pod).Spec.Tolerations[0] == &teal.(*corev1.Pod).Spec.Tolerations[0])
		stop()
	}

	// Output:
	// true
	// false
}
