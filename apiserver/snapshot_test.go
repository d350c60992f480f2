package apiserver

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"pgregory.net/rapid"
)

var (
	widgetKind = Kind{Group: "example.org", Version: "v1", Kind: "Widget"}
	gadgetKind = Kind{Group: "example.org", Version: "v1", Kind: "Gadget"}
)

func customNamed(kind Kind, name string) runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.Group + "/" + kind.Version, "kind": kind.Kind, "metadata": map[string]any{"name": name, "namespace": "default"},
	}}
}

// A restored server has its old content and version, and remembers nothing from
// before and after. Every watcher must start over.
func TestRestore(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		configs := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
		custom := dynamic.NewForConfigOrDie(server.Config())
		gadgets := widgets.GroupVersion().WithResource("gadgets")
		before := server.Version()
		check(server.Put(configMapNamed("a", map[string]string{"l": "old"}), configMapNamed("b", nil)))
		check(server.Register(widgetKind))
		check(server.Put(customNamed(widgetKind, "w")))
		snapshot := server.Snapshot()

		check(server.Put(configMapNamed("a", map[string]string{"l": "new"}), configMapNamed("c", nil)))
		check(server.Delete(configMapNamed("b", nil), widgetKind.definition()))
		check(server.Register(gadgetKind))
		check(server.Put(customNamed(gadgetKind, "g")))
		future := server.Version()
		streams := []watch.Interface{
			must[watch.Interface](t)(configs.Watch(t.Context(), metav1.ListOptions{ResourceVersion: future})),
			must[watch.Interface](t)(custom.Resource(gadgets).Watch(t.Context(), metav1.ListOptions{ResourceVersion: future})),
		}

		for range 2 { // as often as one likes
			check(server.Restore(snapshot))
		}
		for i, stream := range streams {
			if event, more := <-stream.ResultChan(); more {
				t.Errorf("watch %d continues with %v", i, event)
			}
		}
		if server.Version() != snapshot.Version() || snapshot.Version() == future {
			t.Errorf("at %s, the snapshot at %s, before it was restored %s", server.Version(), snapshot.Version(), future)
		}
		list := must[*corev1.ConfigMapList](t)(configs.List(t.Context(), metav1.ListOptions{}))
		if names(list) != "a b" || list.Items[0].Labels["l"] != "old" || list.ResourceVersion != snapshot.Version() {
			t.Errorf("restored: %s at %s, a is %s", names(list), list.ResourceVersion, list.Items[0].Labels["l"])
		}
		if _, err := custom.Resource(gadgets).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("a resource that was defined since: %v", err)
		}
		restored := must[*unstructured.UnstructuredList](t)(custom.Resource(widgets).List(t.Context(), metav1.ListOptions{}))
		if len(restored.Items) != 1 {
			t.Errorf("%d objects of a resource that was removed since", len(restored.Items))
		}

		// The future is silent, the past is gone, and the present continues.
		if told := follow(t, configs, metav1.ListOptions{ResourceVersion: future, TimeoutSeconds: seconds(60)}); len(told) > 0 {
			t.Errorf("a watch from the undone future: %q", told)
		}
		if told := follow(t, configs, metav1.ListOptions{ResourceVersion: before, TimeoutSeconds: seconds(60)}); fmt.Sprint(told) != "[ERROR 410 Expired]" {
			t.Errorf("a watch from before the snapshot: %q", told)
		}
		stream := must[watch.Interface](t)(custom.Resource(widgets).Watch(t.Context(), metav1.ListOptions{ResourceVersion: snapshot.Version()}))
		check(server.Put(customNamed(widgetKind, "v")))
		if event := <-stream.ResultChan(); event.Type != watch.Added {
			t.Errorf("a watch from the snapshot: %v", event)
		}
		stream.Stop()
	})
}

func TestRestoreRefuses(t *testing.T) {
	one, other := New(Options{}), New(Options{})
	t.Cleanup(one.Close)
	t.Cleanup(other.Close)
	for _, snapshot := range []*Snapshot{nil, other.Snapshot()} {
		if err := one.Restore(snapshot); err == nil || !strings.Contains(err.Error(), "not one of this server") {
			t.Errorf("restored from a snapshot of another: %v", err)
		}
	}
}

// Whatever is written, taken as a snapshot and restored, the server holds what a
// plain map with copies of itself holds.
func TestRestoreModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		server := New(Options{})
		defer server.Close()
		type moment struct {
			snapshot *Snapshot
			content  map[string]string
		}
		content := map[string]string{}
		moments := []moment{{server.Snapshot(), map[string]string{}}}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
			var err error
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				moments = append(moments, moment{server.Snapshot(), maps.Clone(content)})
			case 1:
				then := rapid.SampledFrom(moments).Draw(rt, "moment")
				err, content = server.Restore(then.snapshot), maps.Clone(then.content)
			case 2:
				label := rapid.StringMatching("[a-z]").Draw(rt, "label")
				err, content[name] = server.Put(configMapNamed(name, map[string]string{"l": label})), label
			case 3:
				if _, there := content[name]; there {
					err = server.Delete(configMapNamed(name, nil))
				}
				delete(content, name)
			}
			if err != nil {
				rt.Fatal(err)
			}
			list, err := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				rt.Fatal(err)
			}
			held := map[string]string{}
			for _, item := range list.Items {
				held[item.Name] = item.Labels["l"]
			}
			if !maps.Equal(held, content) {
				rt.Fatalf("holds %v, want %v", held, content)
			}
		}
	})
}
