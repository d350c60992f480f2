package contender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
	"github.com/tarnproject/tarn/kube"
)

func tarns() []Contender {
	return []Contender{
		{Name: "tarn cache", Doc: "tarn's cache over client-go's ListWatch, protobuf", Format: replay.Protobuf, Start: startCache},
		{Name: "tarn cache list", Doc: "the same with KUBE_FEATURE_WatchListClient=false", Format: replay.Protobuf, Environment: listing, Start: startCache},
		{Name: "tarn cache GOGC=200", Doc: "tarn's cache, collected half as often: a smaller heap is otherwise collected more often than client-go's", Format: replay.Protobuf, Environment: []string{"GOGC=200"}, Start: startCache},
		{Name: "tarn cache REST client", Doc: "tarn's cache over its NewListWatchFromClient, protobuf", Format: replay.Protobuf, Start: startCacheFromClient},
		{Name: "tarn kube", Doc: "kube.Reflect, protobuf", Format: replay.Protobuf, Start: startKube},
		{Name: "tarn kube list", Doc: "the same with KUBE_FEATURE_WatchListClient=false", Format: replay.Protobuf, Environment: listing, Start: startKube},
		{Name: "tarn informers", Doc: "informers.NewSharedInformerFactoryForConfig, protobuf", Format: replay.Protobuf, Start: startInformers},
		{Name: "tarn informers clientset", Doc: "informers.NewSharedInformerFactory of a clientset, protobuf", Format: replay.Protobuf, Start: startClientsetInformers},
		{Name: "tarn ctrlcache", Doc: "ctrlcache.NewCache, protobuf", Format: replay.Protobuf, Start: startManaged(ctrlcache.NewCache)},
		{Name: "tarn typed", Doc: "kube.Reflect of a custom resource's Go type, JSON", Format: replay.Custom, Start: startKubeTyped},
		{Name: "tarn dynamic", Doc: "kube.ReflectResource of a custom resource", Format: replay.Custom, Start: startKubeDynamic},
		{Name: "tarn dynamicinformer", Doc: "dynamicinformer.NewFactoryForConfig, a custom resource", Format: replay.Custom, Start: startDynamicInformers},
		{Name: "tarn dynamicinformer client", Doc: "dynamicinformer.NewDynamicSharedInformerFactory of a dynamic client, a custom resource", Format: replay.Custom, Start: startDynamicClientInformers},
		{Name: "tarn metadata", Doc: "kube.ReflectMetadata, protobuf", Format: replay.Metadata, Start: startKubeMetadata},
	}
}

func startCache(ctx context.Context, s Setup) (Copy, error) {
	source, err := podListWatch(s.Config)
	if err != nil {
		return Copy{}, err
	}
	return runInformer(ctx, cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, indexers()), s)
}

func startCacheFromClient(ctx context.Context, s Setup) (Copy, error) {
	client, err := kubernetes.NewForConfig(inProtobuf(s.Config))
	if err != nil {
		return Copy{}, err
	}
	pods := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything())
	return runInformer(ctx, cache.NewSharedIndexInformer(pods, &corev1.Pod{}, 0, indexers()), s)
}

func startInformers(ctx context.Context, s Setup) (Copy, error) {
	factory, err := informers.NewSharedInformerFactoryForConfig(inProtobuf(s.Config), 0)
	if err != nil {
		return Copy{}, err
	}
	return runInformer(ctx, factory.Core().V1().Pods().Informer(), s)
}

func startClientsetInformers(ctx context.Context, s Setup) (Copy, error) {
	client, err := kubernetes.NewForConfig(inProtobuf(s.Config))
	if err != nil {
		return Copy{}, err
	}
	return runInformer(ctx, informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), s)
}

func startDynamicInformers(ctx context.Context, s Setup) (Copy, error) {
	factory, err := dynamicinformer.NewFactoryForConfig(s.Config, 0, metav1.NamespaceAll, nil)
	if err != nil {
		return Copy{}, err
	}
	return runInformer(ctx, factory.ForResource(customResource).Informer(), s)
}

func startDynamicClientInformers(ctx context.Context, s Setup) (Copy, error) {
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		return Copy{}, err
	}
	return runInformer(ctx, dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(customResource).Informer(), s)
}

func startKube(ctx context.Context, s Setup) (Copy, error) {
	pods, err := kube.Reflect[*corev1.Pod](ctx, s.Config)
	return follow(pods, err, s)
}

func startKubeTyped(ctx context.Context, s Setup) (Copy, error) {
	pods, err := kube.Reflect[*CustomPod](ctx, s.Config, kube.Scheme(customScheme()))
	return follow(pods, err, s)
}

func startKubeDynamic(ctx context.Context, s Setup) (Copy, error) {
	pods, err := kube.ReflectResource(ctx, s.Config, customResource)
	return follow(pods, err, s)
}

func startKubeMetadata(ctx context.Context, s Setup) (Copy, error) {
	pods, err := kube.ReflectMetadata(ctx, s.Config, corev1.SchemeGroupVersion.WithResource("pods"))
	return follow(pods, err, s)
}

// follow subscribes to a replica, unless it could not be made, and reads from it.
func follow[T metav1.Object](replica *tarn.Replica[T], err error, s Setup) (Copy, error) {
	if err != nil {
		return Copy{}, err
	}
	subscription, err := replica.Subscribe(func(c tarn.Change[T]) { s.Changed(c.Object) }, tarn.SubscribeOptions{})
	if err != nil {
		return Copy{}, fmt.Errorf("subscribe: %w", err)
	}
	return Copy{
		Synced: func(ctx context.Context) error {
			if err := replica.WaitSynced(ctx); err != nil {
				return err
			}
			select {
			case <-subscription.Synced():
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
		Get: func(namespace, name string) (metav1.Object, error) {
			object, ok := replica.Get(tarn.Key(namespace + "/" + name))
			if !ok {
				return nil, fmt.Errorf("%s/%s is not in the replica", namespace, name)
			}
			return object, nil
		},
		List: func(visit func(metav1.Object)) error {
			for _, object := range replica.All() {
				visit(object)
			}
			return nil
		},
	}, nil
}
