package apiserver

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Many clients count in one object: no step is lost, and every watcher sees each
// version once, in order, whatever else happens.
func TestManyAtOnce(t *testing.T) {
	const writers, steps = 4, 25
	server := New(Options{})
	defer server.Close()
	if err := server.Put(configMapNamed("counter", nil)); err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := server.Version()
	var watchers, workers sync.WaitGroup
	for range 3 {
		watchers.Go(func() {
			stream, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: start, FieldSelector: "metadata.name=counter"})
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Stop()
			want := 0
			for event := range stream.ResultChan() {
				object, ok := event.Object.(*corev1.ConfigMap)
				if want++; !ok || object.Data["n"] != strconv.Itoa(want) {
					t.Errorf("event %d: %v", want, event.Object)
				}
				if want == writers*steps {
					return
				}
			}
			t.Errorf("the watch ended at %d", want)
		})
	}
	for range writers {
		workers.Go(func() {
			for range steps {
				for {
					object, err := client.Get(ctx, "counter", metav1.GetOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					n, _ := strconv.Atoi(object.Data["n"])
					object.Data["n"] = strconv.Itoa(n + 1)
					if _, err = client.Update(ctx, object, metav1.UpdateOptions{}); err == nil {
						break
					} else if !apierrors.IsConflict(err) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	workers.Go(func() { // in the meantime definitions come and go
		for i := range 10 {
			kind := Kind{Group: "example.org", Version: "v1", Kind: fmt.Sprint("Widget", i%2)}
			if err := server.Register(kind); err != nil {
				t.Error(err)
			}
			if err := server.Delete(kind.definition()); err != nil {
				t.Error(err)
			}
		}
	})
	workers.Wait()
	watchers.Wait()
}
