package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/tarnproject/tarn/cache" // was k8s.io/client-go/tools/cache
)

// ruleName is the ConfigMap that every namespace must have.
const ruleName = "house-rules"

// Controller sees to it that every namespace has the house rules: a ConfigMap
// with the given text. What is deleted is made again, what is edited is restored.
type Controller struct {
	client     kubernetes.Interface
	text       string
	namespaces cache.SharedIndexInformer
	configMaps cache.SharedIndexInformer
	// queue holds the names of namespaces to look at.
	queue workqueue.TypedRateLimitingInterface[string]
	// report is told what was done.
	report func(namespace, did string)
}

// NewController makes a controller. It does nothing before Run.
func NewController(client kubernetes.Interface, text string, report func(namespace, did string)) (*Controller, error) {
	core := client.CoreV1()
	c := &Controller{
		client: client,
		text:   text,
		namespaces: informer(client, &corev1.Namespace{},
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return core.Namespaces().List(ctx, o)
			},
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return core.Namespaces().Watch(ctx, o)
			}),
		configMaps: informer(client, &corev1.ConfigMap{},
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return core.ConfigMaps(metav1.NamespaceAll).List(ctx, o)
			},
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return core.ConfigMaps(metav1.NamespaceAll).Watch(ctx, o)
			}),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		report: report,
	}
	_, err := c.namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { c.queue.Add(object.(*corev1.Namespace).Name) },
	})
	if err != nil {
		return nil, err
	}
	_, err = c.configMaps.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) { c.look(object) },
		DeleteFunc: c.look,
	})
	return c, err
}

func informer(client any, example runtime.Object, list cache.ListWithContextFunc, watch cache.WatchFuncWithContext) cache.SharedIndexInformer {
	lw := &cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: watch}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(lw, client), example, 0, cache.Indexers{})
}

// look has the namespace of a ConfigMap looked at, if it is one of ours.
func (c *Controller) look(object any) {
	name, err := cache.DeletionHandlingObjectToName(object)
	if err == nil && name.Name == ruleName {
		c.queue.Add(name.Namespace)
	}
}

// Run works until ctx ends, and returns when everything has come to rest.
func (c *Controller) Run(ctx context.Context, workers int) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	defer cancel()
	running.Go(func() { c.namespaces.RunWithContext(ctx) })
	running.Go(func() { c.configMaps.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.namespaces.HasSynced, c.configMaps.HasSynced) {
		return errors.New("namespaces and config maps could not be read")
	}
	for range workers {
		running.Go(func() {
			for c.work(ctx) {
			}
		})
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// work looks at one namespace, and says whether there may be more to do.
func (c *Controller) work(ctx context.Context) bool {
	namespace, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(namespace)
	did, err := c.reconcile(ctx, namespace)
	if err != nil {
		c.report(namespace, fmt.Sprintf("will be tried again: %v", err))
		c.queue.AddRateLimited(namespace)
		return true
	}
	c.queue.Forget(namespace)
	if did != "" {
		c.report(namespace, did)
	}
	return true
}

// reconcile brings one namespace to what it should be and says what it did.
func (c *Controller) reconcile(ctx context.Context, namespace string) (did string, err error) {
	_, exists, err := c.namespaces.GetIndexer().GetByKey(namespace)
	if err != nil || !exists {
		return "", err
	}
	object, exists, err := c.configMaps.GetIndexer().GetByKey(namespace + "/" + ruleName)
	if err != nil {
		return "", err
	}
	api := c.client.CoreV1().ConfigMaps(namespace)
	if !exists {
		_, err := api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ruleName},
			Data:       map[string]string{"text": c.text},
		}, metav1.CreateOptions{})
		return "created", err
	}
	found := object.(*corev1.ConfigMap)
	if found.Data["text"] == c.text {
		return "", nil
	}
	// What the cache holds belongs to everyone: change a copy.
	restored := found.DeepCopy()
	restored.Data = map[string]string{"text": c.text}
	_, err = api.Update(ctx, restored, metav1.UpdateOptions{})
	return "restored", err
}
