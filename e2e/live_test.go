package e2e

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/internal/adapter"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
)

// live is a live copy of any kind, as the scenarios see it.
type live interface {
	// onFailure and follow are called before run.
	onFailure(func(context.Context, *cache.Reflector, error)) error
	follow(cache.ResourceEventHandler) error
	// run keeps the copy until ctx ends.
	run(ctx context.Context)
	contents() map[string]metav1.Object
	hasSynced() bool
	// replica is what stands behind a copy of ours; nil behind client-go's.
	replica() replica
}

// replica is a tarn.Replica, whatever it holds.
type replica interface {
	Health() tarn.Health
	WaitSynced(context.Context) error
	WaitFor(context.Context, tarn.Version) error
	Len() int
}

// informing is an informer, of client-go's or ours.
type informing struct {
	informer cache.SharedIndexInformer
	runs     func(context.Context)
}

// byInformer makes copies of what makes informers, and what runs them.
func byInformer(build func(*rest.Config) (cache.SharedIndexInformer, func(context.Context), error)) func(*rest.Config) (live, error) {
	return func(config *rest.Config) (live, error) {
		informer, run, err := build(config)
		return informing{informer, run}, err
	}
}

func (i informing) onFailure(handle func(context.Context, *cache.Reflector, error)) error {
	return i.informer.SetWatchErrorHandlerWithContext(handle)
}

func (i informing) follow(handler cache.ResourceEventHandler) error {
	_, err := i.informer.AddEventHandler(handler)
	return err
}

func (i informing) run(ctx context.Context)            { i.runs(ctx) }
func (i informing) contents() map[string]metav1.Object { return contents(i.informer.GetStore()) }
func (i informing) hasSynced() bool                    { return i.informer.HasSynced() }

func (i informing) replica() replica {
	if r, ours := cache.ReplicaOf(i.informer); ours {
		return r
	}
	return nil
}

// typed is a replica of pods as new code has it.
type typed struct{ *tarn.Replica[*corev1.Pod] }

// typedPods makes the replica that kube.Reflect makes, but does not start it.
func typedPods(s selection) func(*rest.Config) (live, error) {
	return func(config *rest.Config) (live, error) {
		client, err := kube.NewClient(config)
		if err != nil {
			return nil, err
		}
		source, err := kube.NewSource[*corev1.Pod](client, podCollection(s), kube.SourceOptions{})
		if err != nil {
			return nil, err
		}
		r, err := tarn.NewReplica(source, memory.New[*corev1.Pod](), tarn.Options[*corev1.Pod]{Name: "pods", WatchList: true})
		return typed{r}, err
	}
}

// podCollection is the selected pods, for package kube.
func podCollection(s selection) kube.Collection {
	return kube.Collection{
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Object: reflect.TypeFor[*corev1.Pod](), Namespace: s.namespace, LabelSelector: s.labels, FieldSelector: s.fields,
	}
}

func (r typed) onFailure(handle func(context.Context, *cache.Reflector, error)) error {
	return tarn.AdaptReplica(adapter.Key{}, r.Replica).Configure(func(o *tarn.Options[*corev1.Pod]) {
		o.OnError = func(ctx context.Context, err error) { handle(ctx, nil, err) }
	})
}

func (r typed) follow(handler cache.ResourceEventHandler) error {
	_, err := r.Subscribe(func(c tarn.Change[*corev1.Pod]) {
		switch c.Type {
		case tarn.Add:
			handler.OnAdd(c.Object, c.Initial)
		case tarn.Update:
			handler.OnUpdate(c.Old, c.Object)
		case tarn.Delete:
			handler.OnDelete(c.Object)
		}
	}, tarn.SubscribeOptions{})
	return err
}

func (r typed) run(ctx context.Context) { _ = r.Run(ctx) } // returns why ctx ended

func (r typed) contents() map[string]metav1.Object {
	objects := map[string]metav1.Object{}
	for key, pod := range r.All() {
		objects[string(key)] = pod
	}
	return objects
}

func (r typed) hasSynced() bool  { return r.Health().Synced }
func (r typed) replica() replica { return r.Replica }
