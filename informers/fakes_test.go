package informers_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
)

// Tests give the objects of a fake clientset any versions. Handlers get every event, and the
// clientset is not asked whether it went back in time.
func TestVersionsOfFakes(t *testing.T) {
	change := func(t *testing.T, client *fake.Clientset) {
		api := client.CoreV1().ConfigMaps("n")
		object := func(name, version string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version}}
		}
		for i, err := range []error{
			errorOf(api.Create(t.Context(), object("a", "50"), metav1.CreateOptions{})),
			errorOf(api.Update(t.Context(), object("a", "10"), metav1.UpdateOptions{})),
			errorOf(api.Update(t.Context(), object("a", "10"), metav1.UpdateOptions{})),
			errorOf(api.Create(t.Context(), object("b", "30"), metav1.CreateOptions{})),
			api.Delete(t.Context(), "b", metav1.DeleteOptions{}),
			errorOf(api.Create(t.Context(), object("b", "20"), metav1.CreateOptions{})),
		} {
			if err != nil {
				t.Fatalf("change %d: %v", i, err)
			}
		}
	}
	want := []string{"add a@50", "update a@50 -> a@10", "update a@10 -> a@10", "add b@30", "delete b@30", "add b@20"}
	for name, factoryOf := range map[string]func(*fake.Clientset) informers.SharedInformerFactory{
		"ours": func(c *fake.Clientset) informers.SharedInformerFactory {
			return informers.NewSharedInformerFactory(c, 0)
		},
		"client-go": func(c *fake.Clientset) informers.SharedInformerFactory {
			return upstream.NewSharedInformerFactory(c, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				factory := factoryOf(client)
				var told []string
				tell := func(what string, objects ...any) {
					for i, o := range objects {
						if i > 0 {
							what += " ->"
						}
						m := o.(metav1.Object)
						what += fmt.Sprintf(" %s@%s", m.GetName(), m.GetResourceVersion())
					}
					told = append(told, what)
				}
				if _, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
					AddFunc:    func(o any) { tell("add", o) },
					UpdateFunc: func(old, o any) { tell("update", old, o) },
					DeleteFunc: func(o any) { tell("delete", o) },
				}); err != nil {
					t.Fatal(err)
				}
				stop := make(chan struct{})
				factory.Start(stop)
				factory.WaitForCacheSync(stop)
				synctest.Wait()
				change(t, client)
				synctest.Wait()
				if !slices.Equal(told, want) {
					t.Errorf("the handler was told\n%q, want\n%q", told, want)
				}
				lists := 0
				for _, action := range client.Actions() {
					if action.Matches("list", "configmaps") {
						lists++
					}
				}
				if lists != 1 {
					t.Errorf("the clientset was asked for %d lists", lists)
				}
				close(stop)
				factory.Shutdown()
			})
		})
	}
}

func errorOf[T any](_ T, err error) error { return err }
