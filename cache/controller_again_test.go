package cache

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A program that leads, loses that and leads again runs its controller again. The handler
// is told what has changed since, as with client-go.
func TestControllerRunAgain(t *testing.T) {
	listing(t)
	play := func(t *testing.T, l library) (told string) {
		synctest.Test(t, func(t *testing.T) {
			var c calls
			state := func(store Store, controller Controller) {
				c.note("synced %v, version %q, %d objects", controller.HasSynced(), controller.LastSyncResourceVersion(), len(store.ListKeys()))
			}
			list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.ConfigMap{
				*madeBy("changes", "1", "server"), *madeBy("goes", "2", "server"), *madeBy("stays", "3", "server"),
			}}
			var server *watch.FakeWatcher
			store, controller := l.newInformer(InformerOptions{ObjectType: &corev1.ConfigMap{}, Handler: c.handler("h"), ListerWatcher: &ListWatch{
				ListFunc: func(metav1.ListOptions) (runtime.Object, error) { return list.DeepCopy(), nil },
				WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
					server = watch.NewFakeWithChanSize(10, false)
					return server, nil
				},
			}})
			checker := controller.HasSyncedChecker()
			for range 2 {
				state(store, controller)
				runFor(controller.RunWithContext, func() { state(store, controller) })()
				list = &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.ConfigMap{
					*madeBy("changes", "7", "server"), *madeBy("comes", "8", "server"), *madeBy("stays", "3", "server"),
				}}
			}
			runFor(controller.RunWithContext, func() { server.Modify(madeBy("stays", "10", "server")) })()
			state(store, controller)
			c.note("checker %v", hasSynced(checker.Done()))
			told = c.String()
		})
		return told
	}
	if got, want := play(t, ours), play(t, clientGo); got != want {
		t.Errorf("ours told\n%s\n\nclient-go told\n%s", got, want)
	}
}

// A controller that is running already is not run twice at once.
func TestControllerRunTwiceAtOnce(t *testing.T) {
	listing(t)
	synctest.Test(t, func(t *testing.T) {
		lw := &ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}
		_, controller := NewInformerWithOptions(InformerOptions{ListerWatcher: lw, ObjectType: &corev1.ConfigMap{}})
		stop := running(controller.RunWithContext)
		synctest.Wait()
		controller.RunWithContext(context.Background()) // returns
		if !controller.HasSynced() {
			t.Error("the first run ended")
		}
		stop()
	})
}
