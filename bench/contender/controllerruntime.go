package contender

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/bench/replay"
)

func controllerRuntime() []Contender {
	return []Contender{
		{Name: "controller-runtime", Doc: "controller-runtime's cache, protobuf", Format: replay.Protobuf, Start: startManaged(cache.New)},
	}
}

// startManaged uses a cache as controller-runtime's manager does.
func startManaged(create cache.NewCacheFunc) func(context.Context, Setup) (Copy, error) {
	return func(ctx context.Context, s Setup) (Copy, error) {
		pods, err := create(s.Config, cache.Options{Scheme: scheme.Scheme})
		if err != nil {
			return Copy{}, err
		}
		informer, err := pods.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
		if err != nil {
			return Copy{}, err
		}
		registration, err := informer.AddEventHandler(handler(s))
		if err != nil {
			return Copy{}, err
		}
		failed := make(chan error, 1)
		go func() { failed <- pods.Start(ctx) }()
		return Copy{
			Synced: func(ctx context.Context) error {
				select {
				case <-registration.HasSyncedChecker().Done():
					return nil
				case err := <-failed:
					return errors.Join(errors.New("the cache has ended"), err)
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
			Get: func(namespace, name string) (metav1.Object, error) {
				pod := &corev1.Pod{}
				return pod, pods.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
			},
			List: func(visit func(metav1.Object)) error {
				var list corev1.PodList
				if err := pods.List(ctx, &list); err != nil {
					return err
				}
				for i := range list.Items {
					visit(&list.Items[i])
				}
				return nil
			},
		}, nil
	}
}
