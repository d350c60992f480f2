package contender

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/bench/replay"
)

func clientGo() []Contender {
	return []Contender{
		{Name: "client-go", Doc: "client-go's informer factory, protobuf", Format: replay.Protobuf, Start: startFactory},
		{Name: "client-go list", Doc: "the same with KUBE_FEATURE_WatchListClient=false", Format: replay.Protobuf, Environment: listing, Start: startFactory},
		{Name: "client-go typed", Doc: "client-go's informer of a custom resource's Go type, JSON", Format: replay.Custom, Start: startTyped},
		{Name: "client-go dynamic", Doc: "client-go's dynamic informer of a custom resource", Format: replay.Custom, Start: startDynamic},
		{Name: "client-go metadata", Doc: "client-go's metadata informer, protobuf", Format: replay.Metadata, Start: startMetadata},
	}
}

func startFactory(ctx context.Context, s Setup) (Copy, error) {
	client, err := kubernetes.NewForConfig(inProtobuf(s.Config))
	if err != nil {
		return Copy{}, err
	}
	return runInformer(ctx, informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), s)
}

func startTyped(ctx context.Context, s Setup) (Copy, error) {
	source, err := customListWatch(s.Config)
	if err != nil {
		return Copy{}, err
	}
	return runInformer(ctx, upstream.NewSharedIndexInformer(source, &CustomPod{}, 0, indexers()), s)
}

func startDynamic(ctx context.Context, s Setup) (Copy, error) {
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		return Copy{}, err
	}
	return runInformer(ctx, dynamicinformer.NewFilteredDynamicInformer(client, customResource, metav1.NamespaceAll, 0, indexers(), nil).Informer(), s)
}

func startMetadata(ctx context.Context, s Setup) (Copy, error) {
	client, err := metadata.NewForConfig(s.Config)
	if err != nil {
		return Copy{}, err
	}
	informer := metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceAll, 0, indexers(), nil)
	return runInformer(ctx, informer.Informer(), s)
}

// podListWatch is client-go's source of pods.
func podListWatch(c *rest.Config) (upstream.ListerWatcher, error) {
	client, err := kubernetes.NewForConfig(inProtobuf(c))
	if err != nil {
		return nil, err
	}
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	return listWatch(client, pods.List, pods.Watch), nil
}

// listWatch makes a source of what generated clients have.
func listWatch[L runtime.Object](client any, list func(context.Context, metav1.ListOptions) (L, error), watch func(context.Context, metav1.ListOptions) (watch.Interface, error)) upstream.ListerWatcher {
	return upstream.ToListWatcherWithWatchListSemantics(&upstream.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) },
		WatchFuncWithContext: watch,
	}, client)
}
