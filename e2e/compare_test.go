package e2e

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/cache"
)

// truth reads a collection from the server, consistently and anew.
type truth func(context.Context) (map[string]metav1.Object, error)

func truthOfPods(client kubernetes.Interface, s selection) truth {
	return func(ctx context.Context) (map[string]metav1.Object, error) {
		options := metav1.ListOptions{}
		s.apply(&options)
		list, err := client.CoreV1().Pods(s.namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		objects := make(map[string]metav1.Object, len(list.Items))
		for i := range list.Items {
			objects[keyOf(&list.Items[i])] = &list.Items[i]
		}
		return objects, nil
	}
}

func truthOfCustom(client dynamic.Interface, resource schema.GroupVersionResource) truth {
	return func(ctx context.Context) (map[string]metav1.Object, error) {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		objects := make(map[string]metav1.Object, len(list.Items))
		for i := range list.Items {
			objects[keyOf(&list.Items[i])] = &list.Items[i]
		}
		return objects, nil
	}
}

// contents is what a store holds.
func contents(store cache.Store) map[string]metav1.Object {
	objects := map[string]metav1.Object{}
	for _, key := range store.ListKeys() {
		if object, ok, err := store.GetByKey(key); err == nil && ok {
			objects[key] = object.(metav1.Object)
		}
	}
	return objects
}

// maxDifferences is how many are worth reading.
const maxDifferences = 10

// differences returns how have differs from want, in a few lines; none if they are
// equal.
func differences(want, have map[string]metav1.Object, same func(a, b metav1.Object) bool) []string {
	var found []string
	for key, object := range want {
		switch other, ok := have[key]; {
		case !ok:
			found = append(found, fmt.Sprintf("lacks %s", describe(object)))
		case !same(object, other):
			found = append(found, fmt.Sprintf("has %s, not %s", describe(other), describe(object)))
		}
	}
	for key, object := range have {
		if _, ok := want[key]; !ok {
			found = append(found, fmt.Sprintf("still has %s", describe(object)))
		}
	}
	slices.Sort(found)
	if more := len(found) - maxDifferences; more > 0 {
		found = append(found[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return found
}

// sameContent compares whole objects without the kind, which lists and streams set
// differently.
func sameContent(a, b metav1.Object) bool {
	return reflect.DeepEqual(withoutKind(a), withoutKind(b))
}

func withoutKind(object metav1.Object) any {
	if pod, ok := object.(*corev1.Pod); ok {
		plain := *pod
		plain.TypeMeta = metav1.TypeMeta{}
		return &plain
	}
	return object.(runtime.Object)
}
