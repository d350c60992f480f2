package e2e

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

var (
	widgets     = schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// customResource: a resource is defined, used, removed while it is watched, and
// defined again.
func customResource(s *testEnv) {
	config := s.server.Config(AdminToken)
	config.ContentConfig = rest.ContentConfig{} // custom resources are not served in protobuf
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	s.define(client)
	for i := range 20 {
		s.putWidget(client, i, "first")
	}
	s.start(customKinds(widgets), config, truthOfCustom(client, widgets))
	s.waitSynced()
	for i := range 10 {
		s.putWidget(client, i, "second")
	}
	for i := range 5 {
		if err := client.Resource(widgets).Delete(s.Context(), widgetName(i), metav1.DeleteOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	s.converge(promptly)

	if err := client.Resource(definitions).Delete(s.Context(), widgets.GroupResource().String(), metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	for _, subject := range s.subjects {
		err := eventually(s.T, 30*time.Second, func() error {
			if left := len(subject.live.contents()); left > 0 {
				return fmt.Errorf("%d widgets are left of a resource that is gone", left)
			}
			return nil
		})
		if err != nil {
			s.Errorf("%s: %v", subject.name, err)
		}
	}
	for _, subject := range s.ours() {
		subject.healthBecomes(s.T, time.Minute, "the resource is not there", func(h tarn.Health) bool { return apierrors.IsNotFound(h.Err) })
	}

	s.define(client)
	for i := range 15 {
		s.putWidget(client, i, "third")
	}
	s.converge(recovery)
}

func (s *testEnv) define(client dynamic.Interface) {
	s.Helper()
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": widgets.GroupResource().String()},
		"spec": map[string]any{
			"group": widgets.Group,
			"scope": "Cluster",
			"names": map[string]any{"plural": widgets.Resource, "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": widgets.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
	// The old definition may still be on its way out.
	s.retry(time.Minute, func(ctx context.Context) error {
		_, err := client.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{})
		return err
	})
	s.retry(time.Minute, func(ctx context.Context) error {
		_, err := client.Resource(widgets).List(ctx, metav1.ListOptions{})
		return err
	})
}

// putWidget creates or changes a widget. A resource that has just been defined
// can be listed a little earlier than written.
func (s *testEnv) putWidget(client dynamic.Interface, i int, size string) {
	s.Helper()
	s.retry(30*time.Second, func(ctx context.Context) error {
		existing, err := client.Resource(widgets).Get(ctx, widgetName(i), metav1.GetOptions{})
		if err == nil {
			existing.Object["spec"] = map[string]any{"size": size}
			_, err = client.Resource(widgets).Update(ctx, existing, metav1.UpdateOptions{})
			return err
		}
		_, err = client.Resource(widgets).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": widgets.GroupVersion().String(),
			"kind":       "Widget",
			"metadata":   map[string]any{"name": widgetName(i)},
			"spec":       map[string]any{"size": size},
		}}, metav1.CreateOptions{})
		return err
	})
}

func widgetName(i int) string { return fmt.Sprintf("widget-%d", i) }
