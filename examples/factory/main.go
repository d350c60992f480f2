// Factory shares informers among the parts of a program: each asks the factory
// for what it needs, and each collection is read once.
//
// It is written against client-go's informers. Only the import paths of packages
// informers and cache are Tarn's.
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
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/examples/internal/cluster"
	"github.com/tarnproject/tarn/informers"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	client := cluster.New(
		node("node-1", "north"), node("node-2", "south"),
		pod("api", "node-1"), pod("web", "node-2"),
	)
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactory(client, 0)
	defer factory.Shutdown() // waits for the informers
	defer cancel()           // which this ends

	// One part of the program asks for listers, another for changes. They share
	// the informers.
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	podLister, nodeLister := pods.Lister(), nodes.Lister()
	moved := make(chan string, 10)
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if p := object.(*corev1.Pod); !initial {
				moved <- p.Name + " came to " + p.Spec.NodeName
			}
		},
	})
	if err != nil {
		return err
	}

	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.New(kind.String() + " could not be read")
		}
	}

	// report joins two collections without a request to the server.
	report := func() error {
		all, err := podLister.List(labels.Everything())
		if err != nil {
			return err
		}
		var lines []string
		for _, p := range all {
			n, err := nodeLister.Get(p.Spec.NodeName)
			if err != nil {
				return err
			}
			lines = append(lines, p.Name+" is in the "+n.Labels["region"])
		}
		slices.Sort(lines)
		for _, line := range lines {
			fmt.Fprintln(out, line)
		}
		return nil
	}
	if err := report(); err != nil {
		return err
	}

	if err := client.AwaitWatches(ctx, "pods", "nodes"); err != nil {
		return err
	}
	if _, err := client.CoreV1().Pods("default").Create(ctx, pod("cron", "node-2"), metav1.CreateOptions{}); err != nil {
		return err
	}
	select {
	case line := <-moved:
		fmt.Fprintln(out, line)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return report()
}

func node(name, region string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}}}
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}
