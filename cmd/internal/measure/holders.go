package measure

import (
	"context"
	"os"
	"reflect"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// startInformer uses client-go: the factory's typed informer over protobuf if there is one
// for the resource, else the dynamic one.
func startInformer(ctx context.Context, cfg *rest.Config, task Task) (*holding, error) {
	informer, typed, err := newInformer(cfg, task)
	if err != nil {
		return nil, err
	}
	failure := make(chan error, 1)
	err = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { keepFirst(failure, err) })
	if err != nil {
		return nil, err
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return &holding{
		typed: typed,
		count: func() int { return len(informer.GetStore().ListKeys()) },
		synced: func(ctx context.Context) error {
			select {
			case <-handler.HasSyncedChecker().Done():
				return nil
			case err := <-failure: // an informer retries for ever
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
	}, nil
}

func newInformer(cfg *rest.Config, task Task) (informer cache.SharedIndexInformer, typed bool, err error) {
	narrow := func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = task.Labels, task.Fields }
	client, err := kubernetes.NewForConfig(inProtobuf(cfg))
	if err != nil {
		return nil, false, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(task.Namespace), informers.WithTweakListOptions(narrow))
	if generic, err := factory.ForResource(task.Resource); err == nil {
		return generic.Informer(), true, nil
	}
	untyped, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, false, err
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	return dynamicinformer.NewFilteredDynamicInformer(untyped, task.Resource, task.Namespace, 0, indexers, narrow).Informer(), false, nil
}

func inProtobuf(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return cfg
}

// startReplica uses Tarn, with the same kinds of objects.
func startReplica(ctx context.Context, cfg *rest.Config, task Task) (*holding, error) {
	client, err := kube.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	collection := kube.Collection{
		Resource: task.Resource, Kind: task.Resource.GroupVersion().WithKind(task.Kind),
		Object:    reflect.TypeFor[*unstructured.Unstructured](),
		Namespace: task.Namespace, LabelSelector: task.Labels, FieldSelector: task.Fields,
	}
	object, err := scheme.Scheme.New(collection.Kind)
	typed := err == nil
	if typed {
		collection.Object = reflect.TypeOf(object)
	}
	source, err := kube.NewSource[runtime.Object](client, collection, kube.SourceOptions{})
	if err != nil {
		return nil, err
	}
	failure := make(chan error, 1)
	replica, err := tarn.NewReplica(source, memory.New[runtime.Object](), tarn.Options[runtime.Object]{
		Name: collection.String(), WatchList: os.Getenv("KUBE_FEATURE_WatchListClient") != "false",
		OnError: func(_ context.Context, err error) { keepFirst(failure, err) },
	})
	if err != nil {
		return nil, err
	}
	subscription, err := replica.Subscribe(func(tarn.Change[runtime.Object]) {}, tarn.SubscribeOptions{})
	if err != nil {
		return nil, err
	}
	go func() { _ = replica.Run(ctx) }()
	return &holding{
		typed: typed, count: replica.Len,
		synced: func(ctx context.Context) error {
			select {
			case <-subscription.Synced():
				return nil
			case err := <-failure:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
	}, nil
}

// keepFirst keeps the first failure, which is why the copy does not sync.
func keepFirst(failure chan<- error, err error) {
	select {
	case failure <- err:
	default:
	}
}
