// Package cluster stands for a Kubernetes API server, so that the examples run
// anywhere. A program of yours makes its clientset from a rest.Config instead
// and needs nothing of this.
package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/testing"
)

// Cluster is client-go's fake clientset, which can say when it is watched.
//
// The fake has no history: what is written between a list and the watch after it
// is never told. A real server has one, and nobody has to wait for a watch.
type Cluster struct {
	*fake.Clientset
	watches chan string
}

// New returns a cluster that holds the objects.
func New(objects ...runtime.Object) *Cluster {
	c := &Cluster{Clientset: fake.NewClientset(objects...), watches: make(chan string, 100)}
	c.PrependWatchReactor("*", func(action testing.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if a, ok := action.(testing.WatchActionImpl); ok {
			options = a.ListOptions
		}
		resource := action.GetResource()
		w, err := c.Tracker().Watch(resource, action.GetNamespace(), options)
		if err == nil {
			c.watches <- resource.Resource
		}
		return true, w, err
	})
	return c
}

// AwaitWatches waits until each of the resources is watched.
func (c *Cluster) AwaitWatches(ctx context.Context, resources ...string) error {
	missing := map[string]bool{}
	for _, r := range resources {
		missing[r] = true
	}
	for len(missing) > 0 {
		select {
		case r := <-c.watches:
			delete(missing, r)
		case <-ctx.Done():
			return fmt.Errorf("nobody watches %v: %w", missing, context.Cause(ctx))
		}
	}
	return nil
}
