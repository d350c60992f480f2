package cache

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/client-go/tools/cache"
)

// What the facade relies on in client-go's reflector, of whatever version this is built
// with: a watch that ends with 410 ends the pass, without an error, without another
// watch and without another list.
func TestClientGoEndsAPassQuietlyAfter410(t *testing.T) {
	for name, streamed := range map[string]bool{"listed": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lists, watches int
				lw := &ListWatch{
					ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
						lists++
						return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
					},
					WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
						watches++
						w := watch.NewFakeWithChanSize(3, false)
						initial := options.SendInitialEvents != nil && *options.SendInitialEvents
						if initial {
							if !streamed {
								w.Stop() // it lists instead
								return w, nil
							}
							w.Action(watch.Bookmark, &v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
						}
						w.Action(watch.Bookmark, &v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}})
						w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
						return w, nil
					},
				}
				r := upstream.NewReflectorWithOptions(lw, &v1.Pod{}, upstream.NewStore(upstream.MetaNamespaceKeyFunc), upstream.ReflectorOptions{Name: "passes"})
				r.ShouldResync = nil
				if err := r.ListAndWatchWithContext(context.Background()); err != nil {
					t.Errorf("the pass ended with %v", err)
				}
				if v := r.LastSyncResourceVersion(); v != "7" {
					t.Errorf("the reflector is at %q", v)
				}
				if lists > 1 || watches > 2 || lists+watches > 3 {
					t.Errorf("%d lists and %d watches", lists, watches)
				}
			})
		})
	}
}
