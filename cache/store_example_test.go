package cache_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/cache"
)

func ExampleNewIndexer() {
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		"node": func(obj any) ([]string, error) {
			return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
		},
	})
	for _, name := range []string{"b", "a"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "4"}}
		pod.Spec.NodeName = "n1"
		if err := pods.Add(pod); err != nil {
			fmt.Println(err)
		}
	}
	keys, err := pods.IndexKeys("node", "n1")
	fmt.Println(keys, err, pods.LastStoreSyncResourceVersion())
	// Output: [default/a default/b] <nil> 4
}
