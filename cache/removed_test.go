package cache

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/client-go/tools/cache"
)

// configMapInformers make an informer of ConfigMaps, ours and client-go's.
var configMapInformers = map[string]func(ListerWatcher) SharedIndexInformer{
	"ours": func(lw ListerWatcher) SharedIndexInformer {
		return NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0, Indexers{})
	},
	"client-go": func(lw ListerWatcher) SharedIndexInformer {
		return upstream.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0, Indexers{})
	},
}

// Tests of controllers delete an object at a fake client and, to be sure, in the
// informer's indexer too. A handler that knows the object gets the delete, as with
// client-go, whichever of the two comes first.
func TestDeleteOfWhatTheUserRemoved(t *testing.T) {
	listing(t)
	for name, library := range configMapInformers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := watch.NewFake()
				a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "3"}}
				informer := library(&ListWatch{
					ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
						return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.ConfigMap{*a}}, nil
					},
					WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return server, nil },
				})
				var told []string
				say := func(what string) func(any) { return func(any) { told = append(told, what) } }
				if _, err := informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: say("add"), DeleteFunc: say("delete")}); err != nil {
					t.Fatal(err)
				}
				stop := running(informer.RunWithContext)
				synctest.Wait()
				if err := informer.GetIndexer().Delete(a); err != nil {
					t.Fatal(err)
				}
				gone := a.DeepCopy()
				gone.ResourceVersion = "6"
				server.Delete(gone)
				synctest.Wait()
				if len(told) != 2 || told[1] != "delete" {
					t.Errorf("the handler was told %q", told)
				}
				stop()
			})
		})
	}
}

// A program that replaces the content of the indexer, or deletes in a transaction,
// removes objects too.
func TestDeleteOfWhatTheUserReplaced(t *testing.T) {
	listing(t)
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "3"}}
	b := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", ResourceVersion: "4"}}
	removals := map[string]func(Indexer) error{
		"Replace": func(x Indexer) error { return x.Replace([]any{b}, "5") },
		"Transaction": func(x Indexer) error {
			if err := x.(TransactionStore).Transaction(Transaction{Type: TransactionTypeDelete, Object: a}); err != nil {
				return err
			}
			return nil
		},
	}
	for by, remove := range removals {
		for name, library := range configMapInformers {
			t.Run(by+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := watch.NewFake()
					informer := library(&ListWatch{
						ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
							return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.ConfigMap{*a, *b}}, nil
						},
						WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return server, nil },
					})
					var deleted []string
					if _, err := informer.AddEventHandler(ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
						deleted = append(deleted, obj.(*corev1.ConfigMap).Name)
					}}); err != nil {
						t.Fatal(err)
					}
					stop := running(informer.RunWithContext)
					synctest.Wait()
					if err := remove(informer.GetIndexer()); err != nil {
						t.Fatal(err)
					}
					for i, gone := range []*corev1.ConfigMap{a.DeepCopy(), b.DeepCopy()} {
						gone.ResourceVersion = []string{"6", "7"}[i]
						server.Delete(gone)
					}
					synctest.Wait()
					if !slices.Equal(deleted, []string{"a", "b"}) {
						t.Errorf("the handler was told that %q are deleted", deleted)
					}
					stop()
				})
			})
		}
	}
}
