package cache

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// givenPod is one of many from the same template.
func givenPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"disk": "a fast one, with a long name"},
			Containers: []corev1.Container{{
				Name: "web", Image: "nginx:1", Args: []string{"-v", "-x"},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}},
		},
	}
}

// A test may change an object that it gave to a fake, and send it again. It belongs to the
// test, so no other object may show the change.
func TestGiversMayChangeTheirOwnObjects(t *testing.T) {
	listing(t)
	changePod := func(o runtime.Object) {
		spec := &o.(*corev1.Pod).Spec
		spec.Containers[0].Image, spec.Containers[0].Args[0] = "nginx:2", "-w"
		spec.NodeSelector["disk"] = "another one, with a long name"
		spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
	}
	for name, kind := range map[string]struct {
		example runtime.Object
		made    func(name string) runtime.Object
		change  func(runtime.Object)
	}{
		"pods": {&corev1.Pod{}, func(name string) runtime.Object { return givenPod(name) }, changePod},
		"secrets": {
			&corev1.Secret{},
			func(name string) runtime.Object {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"key": []byte(strings.Repeat("value", 20))}}
			},
			func(o runtime.Object) { copy(o.(*corev1.Secret).Data["key"], "other") },
		},
		"unstructured": {
			&unstructured.Unstructured{},
			func(name string) runtime.Object {
				list := []any{"a text of some length, so that it is shared", map[string]any{"b": "another text, also long enough"}}
				return &unstructured.Unstructured{Object: map[string]any{
					"kind": "Thing", "apiVersion": "example.org/v1", "metadata": map[string]any{"name": name}, "spec": map[string]any{"list": list},
				}}
			},
			func(o runtime.Object) {
				list := o.(*unstructured.Unstructured).Object["spec"].(map[string]any)["list"].([]any)
				list[0], list[1].(map[string]any)["b"] = "x", "y"
			},
		},
	} {
		for _, by := range []string{"watch", "list"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var given []runtime.Object
					for i := range 4 {
						given = append(given, kind.made(fmt.Sprint("given-", i)))
					}
					list, events := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}, watch.NewFakeWithChanSize(10, false)
					for _, o := range given {
						if by == "list" {
							list.Items = append(list.Items, runtime.RawExtension{Object: o})
						} else {
							events.Add(o)
						}
					}
					informer := NewSharedIndexInformer(&ListWatch{
						ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return list, nil },
						WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
					}, kind.example, 0, Indexers{})
					defer running(informer.RunWithContext)()
					time.Sleep(time.Second)
					synctest.Wait() // the informer has read them
					kind.change(given[0])
					events.Modify(given[0])
					time.Sleep(time.Second)
					for i := range 4 {
						got, _, _ := informer.GetStore().GetByKey(fmt.Sprint("given-", i))
						want := kind.made(fmt.Sprint("given-", i))
						if i == 0 {
							kind.change(want)
						}
						if fmt.Sprint(got) != fmt.Sprint(want) {
							t.Errorf("the cache has\n%v, want\n%v", got, want)
						}
					}
				})
			})
		}
	}
}
