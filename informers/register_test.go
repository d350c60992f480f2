package informers

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	stock "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tarnproject/tarn/cache"
)

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// TestFor registers an informer with a generated factory, which client-go's is.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		name, err := cache.NewInformerName("TestFor")
		if err != nil {
			t.Fatal(err)
		}
		client := fake.NewSimpleClientset(newPod("north", "a", "1"), newPod("north", "b", "2"), newPod("south", "c", "1"))
		factory := stock.NewSharedInformerFactoryWithOptions(client, time.Hour, stock.WithInformerName(name))
		informer := factory.InformerFor(&corev1.Pod{}, For(
			func(c kubernetes.Interface) typedcorev1.PodInterface { return c.CoreV1().Pods("north") },
			&corev1.Pod{},
			Tweaked(func(o *metav1.ListOptions) { o.LabelSelector = "v=1" }),
			Indexed(cache.Indexers{"v": func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Labels["v"]}, nil }}),
			Named(factory.InformerName(), podResource)))
		if pkg := reflect.TypeOf(informer).Elem().PkgPath(); pkg != "github.com/tarnproject/tarn/cache" {
			t.Errorf("the informer is of package %s", pkg)
		}
		if got := len(informer.GetIndexer().GetIndexers()); got != 2 {
			t.Errorf("the informer has %d indexers, wanted those by namespace and by v", got)
		}
		if name.WithResource(podResource).Reserved() {
			t.Error("the informer did not take its name")
		}

		pods := factory.Core().V1().Pods()
		factory.StartWithContext(ctx)
		if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
			t.Fatal(err)
		}
		found, err := pods.Lister().Pods("north").List(labels.Everything())
		if err != nil || len(found) != 1 || found[0].Name != "a" {
			t.Errorf("listed %v, error %v; wanted only a, which the tweak selects", found, err)
		}
		indexed, err := pods.Informer().GetIndexer().ByIndex("v", "1")
		if err != nil || len(indexed) != 1 {
			t.Errorf("indexed %v, error %v; wanted only a", indexed, err)
		}
		synctest.Wait()
		for _, action := range client.Actions() {
			if action.GetNamespace() != "north" {
				t.Errorf("%s in namespace %q", action.GetVerb(), action.GetNamespace())
			}
		}
		cancel()
		factory.Shutdown()
	})
}

// TestForDoesNotShare gives every informer indexes of its own.
func TestForDoesNotShare(t *testing.T) {
	build := For(func(c kubernetes.Interface) Client[*corev1.PodList] { return c.CoreV1().Pods("") }, &corev1.Pod{})
	one, other := build(nil, 0), build(nil, 0)
	if err := one.AddIndexers(cache.Indexers{"none": func(any) ([]string, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	if got := len(other.GetIndexer().GetIndexers()); got != 1 {
		t.Errorf("the other informer has %d indexers, wanted the one by namespace", got)
	}
}

// failing is a client whose every answer is an error, beside a nil list.
type failing struct{}

var errNo = errors.New("no")

func (failing) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) { return nil, errNo }
func (failing) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errNo
}

// TestUntyped does not make an object of a list that is nil.
func TestUntyped(t *testing.T) {
	client := untyped[*corev1.PodList]{failing{}}
	if list, err := client.List(t.Context(), metav1.ListOptions{}); list != nil || err != errNo {
		t.Errorf("List gave %#v, %v", list, err)
	}
	if stream, err := client.Watch(t.Context(), metav1.ListOptions{}); stream != nil || err != errNo {
		t.Errorf("Watch gave %#v, %v", stream, err)
	}
}
