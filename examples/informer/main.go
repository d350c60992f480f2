// Informer keeps a copy of all pods, finds them by node, and tells what happens
// to them.
//
// It is written against client-go's tools/cache. Only the import path of package
// cache is Tarn's.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/examples/internal/cluster"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	client := cluster.New(pod("api", "node-1"), pod("db", "node-1"), pod("web", "node-2"))

	informer := cache.NewSharedIndexInformer(pods(client), &corev1.Pod{}, 0, cache.Indexers{"node": byNode})
	news := make(chan string, 10)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				news <- "added " + object.(*corev1.Pod).Name
			}
		},
		UpdateFunc: func(before, after any) {
			news <- fmt.Sprintf("%s is %s", after.(*corev1.Pod).Name, after.(*corev1.Pod).Status.Phase)
		},
		DeleteFunc: func(object any) {
			// A delete that was missed comes as a DeletedFinalStateUnknown.
			key, err := cache.DeletionHandlingObjectToName(object)
			news <- fmt.Sprint("deleted ", key.Name, " ", err)
		},
	})
	if err != nil {
		return err
	}

	// The informer runs until the context ends, and run returns after it.
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the pods could not be read")
	}
	if err := printNode(out, informer, "node-1"); err != nil {
		return err
	}

	if err := client.AwaitWatches(ctx, "pods"); err != nil {
		return err
	}
	api := client.CoreV1().Pods("default")
	cron := pod("cron", "node-1")
	steps := []func() error{
		func() error { _, err := api.Create(ctx, cron, metav1.CreateOptions{}); return err },
		func() error {
			running := cron.DeepCopy()
			running.Status.Phase = corev1.PodRunning
			_, err := api.UpdateStatus(ctx, running, metav1.UpdateOptions{})
			return err
		},
		func() error { return api.Delete(ctx, "db", metav1.DeleteOptions{}) },
	}
	for _, write := range steps {
		if err := write(); err != nil {
			return err
		}
		select {
		case line := <-news:
			fmt.Fprintln(out, line)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return printNode(out, informer, "node-1")
}

// pods says how to list and watch pods. The last line is for fake clientsets,
// which cannot do all that a server can.
func pods(client kubernetes.Interface) cache.ListerWatcher {
	api := client.CoreV1().Pods(metav1.NamespaceAll)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, options)
		},
	}, client)
}

// byNode is an index: the pods of a node are found without looking at others.
func byNode(object any) ([]string, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T is no pod", object)
	}
	return []string{p.Spec.NodeName}, nil
}

func printNode(out io.Writer, informer cache.SharedIndexInformer, node string) error {
	found, err := informer.GetIndexer().IndexKeys("node", node)
	if err != nil {
		return err
	}
	slices.Sort(found)
	fmt.Fprintln(out, node, "runs", found)
	return nil
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}
