package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/bench/podset"
)

// smallNamespace has the small objects.
const smallNamespace = "small"

// writer writes to the server behind everything.
type writer struct {
	client kubernetes.Interface
	keys   []types.NamespacedName
	nodes  []string // of the pods
	bytes  int      // of all pods
	next   int
}

// newWriter fills the server with pods.
func newWriter(ctx context.Context, to *server) (*writer, error) {
	client, err := kubernetes.NewForConfig(to.protobuf())
	if err != nil {
		return nil, err
	}
	set, err := podset.Read(*data, podset.ReplicaSets, *pods)
	if err != nil {
		return nil, err
	}
	if err := podset.Fill(ctx, client, set.Pods); err != nil {
		return nil, err
	}
	w := &writer{client: client}
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		w.keys = append(w.keys, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		w.nodes = append(w.nodes, pod.Spec.NodeName)
		w.bytes += pod.Size()
	}
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: smallNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	_, err = client.CoreV1().ConfigMaps(smallNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "small"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	return w, nil
}

// version is the newest one of the pods, or of the small objects.
func (w *writer) version(ctx context.Context, small bool) (string, error) {
	if small {
		list, err := w.client.CoreV1().ConfigMaps(smallNamespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return "", err
		}
		return list.ResourceVersion, nil
	}
	list, err := w.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

// write updates n objects at a rate.
func (w *writer) write(ctx context.Context, n int, perSecond float64, small bool) error {
	tick := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer tick.Stop()
	for range n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"sent":"%s%d"}}}`, sentMark, time.Now().UnixNano())
		var err error
		if small {
			_, err = w.client.CoreV1().ConfigMaps(smallNamespace).Patch(ctx, "small", types.MergePatchType, patch, metav1.PatchOptions{})
		} else {
			key := w.keys[w.next%len(w.keys)]
			w.next++
			_, err = w.client.CoreV1().Pods(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
