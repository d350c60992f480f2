package framework_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/cache"
	framework "github.com/tarnproject/tarn/cache/testing"
)

// A test fills the source itself and lets an informer follow it.
func ExampleNewFakeControllerSource() {
	source := framework.NewFakeControllerSource()
	source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lake", Name: "heron"}})

	informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	fmt.Println(informer.GetStore().ListKeys())

	cancel()
	<-done
	source.Shutdown()

	// Output: [lake/heron]
}
