package cache

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// decoding is a watch like one that a client of a server has: it makes a new object
// for each event.
type decoding struct {
	objects chan runtime.Object
	stop    chan struct{}
	once    sync.Once
}

func (d *decoding) Decode() (watch.EventType, runtime.Object, error) {
	select {
	case object := <-d.objects:
		return watch.Added, object, nil
	case <-d.stop:
		return "", nil, io.EOF
	}
}

func (d *decoding) Close() { d.once.Do(func() { close(d.stop) }) }

// Objects that a watch has decoded belong to nobody else and are shared in place;
// listed objects, those of any other watch, and those that a transform made are not
// written to.
func TestObjectsAreSharedInTheirPlace(t *testing.T) {
	for name, c := range map[string]struct {
		decodes, transform, inPlace bool
	}{
		"decoded":                  {decodes: true, inPlace: true},
		"decoded, and transformed": {decodes: true, transform: true},
		"from another watch":       {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listed := tolerant("listed")
				fake, decoder := watch.NewFake(), &decoding{objects: make(chan runtime.Object), stop: make(chan struct{})}
				informer := NewSharedIndexInformer(&ListWatch{
					ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
						return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{*listed}}, nil
					},
					WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
						switch {
						case options.SendInitialEvents != nil:
							return nil, apierrors.NewBadRequest("no initial events here")
						case c.decodes:
							return watch.NewStreamWatcher(decoder, apierrors.NewClientErrorReporter(500, "GET", "")), nil
						default:
							return fake, nil
						}
					},
				}, &corev1.Pod{}, 0, Indexers{})
				if c.transform {
					must(informer.SetTransform(func(object any) (any, error) { return object, nil }))
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := run(ctx, informer)
				WaitForCacheSync(ctx.Done(), informer.HasSynced)
				own := &listed.Spec.Tolerations[0]
				for i := range 3 {
					given := tolerant(fmt.Sprint("p", i))
					before := &given.Spec.Tolerations[0]
					if c.decodes {
						decoder.objects <- given
					} else {
						fake.Add(given)
					}
					synctest.Wait()
					object, _, _ := informer.GetStore().GetByKey("ns/" + given.Name)
					held := object.(*corev1.Pod)
					if !reflect.DeepEqual(held, tolerant(given.Name)) {
						t.Errorf("held: %v", held)
					}
					if (held == given) != c.inPlace {
						t.Errorf("it is the object that was given: %v", held == given)
					}
					if !c.inPlace && &given.Spec.Tolerations[0] != before {
						t.Error("what was given was written to")
					}
					if i > 0 && &held.Spec.Tolerations[0] == before {
						t.Error("nothing was shared")
					}
				}
				if &listed.Spec.Tolerations[0] != own {
					t.Error("what was listed was written to")
				}
				cancel()
				<-done
			})
		})
	}
}
