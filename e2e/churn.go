package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// churnWorkers and churnPause make a few hundred writes a second, which
	// leaves a small machine room for what is under test.
	churnWorkers = 4
	churnPause   = 10 * time.Millisecond
	// Of a hundred writes these create and delete. More are deleted: since the
	// pods of Deployments come back, it is the others that then stay bounded.
	createShare, deleteShare = 8, 12
	// writesPerList is the number of writes between two lists of the pods.
	writesPerList = 25
)

// Churn changes, labels, deletes and creates the pods of a namespace all the time,
// except the scripted pods. It ignores failures: the server may be down on purpose.
type Churn struct {
	client    kubernetes.Interface
	namespace string
	cancel    context.CancelFunc
	workers   sync.WaitGroup
	writes    atomic.Int64
}

// StartChurn starts changing the pods of a namespace, until it is stopped or the
// test ends.
func (e *Endpoint) StartChurn(namespace string) *Churn {
	e.t.Helper()
	config := e.Config(AdminToken)
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	churn := &Churn{client: client, namespace: namespace, cancel: cancel}
	for worker := range churnWorkers {
		churn.workers.Go(func() { churn.run(ctx, worker) })
	}
	e.t.Cleanup(churn.Stop)
	return churn
}

// Writes says how many succeeded until now.
func (c *Churn) Writes() int64 { return c.writes.Load() }

// WaitWrites waits until n more writes have succeeded, and fails the test if
// they do not in a minute.
func (e *Endpoint) WaitWrites(churn *Churn, n int64) {
	e.t.Helper()
	until := churn.Writes() + n
	// How long that takes depends on the machine, and is not under test.
	e.eventually(5*time.Minute, func(context.Context) error {
		if done := churn.Writes(); done < until {
			return fmt.Errorf("%d of %d writes", done-until+n, n)
		}
		return nil
	})
}

// Stop ends the churn and waits until the last write is done. It may be called
// more than once.
func (c *Churn) Stop() {
	c.cancel()
	c.workers.Wait()
}

func (c *Churn) run(ctx context.Context, worker int) {
	random := rand.New(rand.NewPCG(1, uint64(worker)))
	for round := 0; ctx.Err() == nil; round++ {
		names := c.podNames(ctx)
		for i := range writesPerList {
			if err := c.write(ctx, random, names, fmt.Sprintf("bare-%d-%d-%d", worker, round, i)); err == nil {
				c.writes.Add(1)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(churnPause):
			}
		}
	}
}

// podNames lists the names of the pods, from the server's watch cache.
func (c *Churn) podNames(ctx context.Context) []string {
	list, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: "app!=" + scripted})
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names
}

// write makes one change: mostly small updates, some creations and deletes. The
// pods of Deployments are made anew by the controller-manager.
func (c *Churn) write(ctx context.Context, random *rand.Rand, names []string, fresh string) error {
	pods := c.client.CoreV1().Pods(c.namespace)
	choice := random.IntN(100)
	if len(names) == 0 || choice < createShare {
		_, err := pods.Create(ctx, barePod(fresh), metav1.CreateOptions{})
		return err
	}
	name := names[random.IntN(len(names))]
	if choice < createShare+deleteShare {
		return pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"churn":"%d"},"labels":{"colour":"%s"}}}`,
		random.Uint32(), []string{"red", "green", "blue"}[random.IntN(3)])
	_, err := pods.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
