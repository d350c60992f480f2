// Controller is a controller as many have written one: informers, a work queue,
// workers that reconcile. To move it to Tarn one line was changed, the import of
// package cache in controller.go.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/examples/internal/cluster"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run lets the controller work in a small cluster and disturbs it.
func run(ctx context.Context, out io.Writer) error {
	client := cluster.New()
	done := make(chan string, 10)
	controller, err := NewController(client, "be kind", func(namespace, did string) { done <- namespace + ": " + did })
	if err != nil {
		return err
	}

	// The controller runs until the context ends, and run returns after it.
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, 2) }()
	defer func() {
		cancel()
		<-ended
	}()
	if err := client.AwaitWatches(ctx, "namespaces", "configmaps"); err != nil {
		return err
	}

	core := client.CoreV1()
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"north is founded", func() error { return found(ctx, client, "north") }},
		{"south is founded", func() error { return found(ctx, client, "south") }},
		{"somebody deletes the rules of north", func() error {
			return core.ConfigMaps("north").Delete(ctx, ruleName, metav1.DeleteOptions{})
		}},
		{"somebody has other rules for south", func() error {
			_, err := core.ConfigMaps("south").Update(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "south", Name: ruleName},
				Data:       map[string]string{"text": "be loud"},
			}, metav1.UpdateOptions{})
			return err
		}},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		select {
		case did := <-done:
			fmt.Fprintf(out, "%s\n  %s\n", step.what, did)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	rules, err := core.ConfigMaps("south").Get(ctx, ruleName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the rules of south:", rules.Data["text"])
	return nil
}

func found(ctx context.Context, client *cluster.Cluster, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}
