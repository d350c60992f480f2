package ctrlcache_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func label(value string) labels.Selector { return labels.SelectorFromSet(labels.Set{"lake": value}) }

// rename is a transform that can be seen.
func rename(to string) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if o, ok := in.(client.Object); ok {
			o.SetLabels(map[string]string{"transformed": to})
		}
		return in, nil
	}
}

// everything reads all that is in the cache, and records what the server was asked.
func everything(x *stage) {
	x.list(&corev1.PodList{})
	x.list(&corev1.NodeList{})
	x.list(emptyLakes())
	x.list(emptyMetadatas(resources["configmaps"]))
	x.until("watches", func() bool { // those after a list come later than what is read
		watches := strings.Join(x.server.asked("watch"), "\n")
		for _, line := range x.server.asked("list") {
			words := strings.Split(strings.TrimPrefix(line, "list "), " metadata")
			if !strings.Contains(watches, words[0]) {
				return false
			}
		}
		return true
	})
	x.note("%s", strings.Join(x.server.asked("watch"), "\n"))
}

func TestOptions(t *testing.T) {
	scenarios := map[string]scenario{}
	for name, options := range map[string]func() cache.Options{
		"none":             func() cache.Options { return cache.Options{} },
		"label selector":   func() cache.Options { return cache.Options{DefaultLabelSelector: label("deep")} },
		"transform":        func() cache.Options { return cache.Options{DefaultTransform: rename("all")} },
		"no managedFields": func() cache.Options { return cache.Options{DefaultTransform: cache.TransformStripManagedFields()} },
		"no bookmarks":     func() cache.Options { return cache.Options{DefaultEnableWatchBookmarks: ptr.To(false)} },
		"namespaces": func() cache.Options {
			return cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}, "south": {}}}
		},
		"namespaces with settings": func() cache.Options {
			return cache.Options{
				DefaultLabelSelector: label("deep"),
				DefaultTransform:     rename("default"),
				DefaultNamespaces: map[string]cache.Config{
					"north": {Transform: rename("north")},
					"south": {LabelSelector: labels.Everything(), EnableWatchBookmarks: ptr.To(false)},
				},
			}
		},
		"all namespaces but some": func() cache.Options {
			return cache.Options{DefaultNamespaces: map[string]cache.Config{
				"north": {LabelSelector: label("deep")}, "south": {FieldSelector: fields.OneTermEqualSelector("metadata.name", "c")},
				cache.AllNamespaces: {Transform: rename("elsewhere")},
			}}
		},
		"all namespaces by name": func() cache.Options {
			return cache.Options{DefaultNamespaces: map[string]cache.Config{cache.AllNamespaces: {}}}
		},
		"by object": func() cache.Options {
			return cache.Options{
				DefaultFieldSelector: fields.OneTermNotEqualSelector("metadata.name", "c"),
				DefaultTransform:     rename("default"),
				ByObject: map[client.Object]cache.ByObject{
					&corev1.Pod{}:  {Label: label("deep"), Transform: rename("pods"), EnableWatchBookmarks: ptr.To(false)},
					&corev1.Node{}: {Field: fields.Everything()},
					emptyLake():    {Namespaces: map[string]cache.Config{"south": {}}},
				},
			}
		},
		"by object and namespace": func() cache.Options {
			return cache.Options{
				DefaultLabelSelector: labels.Everything(),
				DefaultNamespaces: map[string]cache.Config{
					"north": {LabelSelector: label("shallow")}, "south": {}, "west": {Transform: rename("west")},
				},
				ByObject: map[client.Object]cache.ByObject{
					&corev1.Pod{}:       {Label: label("deep"), Transform: rename("pods")},
					emptyLake():         {Namespaces: map[string]cache.Config{}, Field: fields.OneTermEqualSelector("metadata.name", "baikal")},
					&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{"north": {LabelSelector: labels.Everything()}, "west": {}}},
				},
			}
		},
		"namespaces for what has none": func() cache.Options {
			return cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Namespaces: map[string]cache.Config{"north": {}}}}}
		},
		"by object that is not served": func() cache.Options {
			return cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {}}}
		},
		"by object that is not known": func() cache.Options {
			return cache.Options{Scheme: runtime.NewScheme(), ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {}}}
		},
		"scheme": func() cache.Options {
			s := runtime.NewScheme()
			s.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, &corev1.Node{})
			s.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v1", Kind: "NodeList"}, &corev1.NodeList{})
			corev1.AddToScheme(s)
			return cache.Options{Scheme: s}
		},
	} {
		scenarios[name] = scenario{options: options, play: everything}
	}
	scenarios["namespaces that are not cached"] = scenario{
		options: func() cache.Options {
			return cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}, "south": {}}}
		},
		play: func(x *stage) {
			x.get(&corev1.Pod{}, "north", "a")
			x.get(&corev1.Pod{}, "west", "d")
			x.get(&corev1.Pod{}, "", "d")
			x.list(&corev1.PodList{}, client.InNamespace("west"))
			x.list(&corev1.PodList{}, client.InNamespace("south"))
			x.get(&corev1.Node{}, "", "n1")
			var pods corev1.PodList
			err := x.cache.List(x.ctx, &pods, client.Limit(3))
			x.note("%d of 4 %s", len(pods.Items), classify(err))
		},
	}
	scenarios["only what is asked for is watched"] = scenario{
		options: func() cache.Options {
			return cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}, "south": {}}}
		},
		play: func(x *stage) {
			x.get(&corev1.Pod{}, "north", "a")
			x.note("%s", strings.Join(x.server.asked("watch"), "\n"))
		},
	}
	runScenarios(t, scenarios)
}

func TestHTTPClientIsUsed(t *testing.T) {
	var used atomic.Int32
	counting := func() cache.Options {
		return cache.Options{HTTPClient: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			used.Add(1)
			return http.DefaultTransport.RoundTrip(r)
		})}}
	}
	runScenarios(t, map[string]scenario{"counted": {options: counting, play: func(x *stage) {
		before := used.Load()
		x.get(&corev1.Pod{}, "north", "a")
		x.note("requests: %t", used.Load() > before)
	}}})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWatchErrorsReachTheHandler(t *testing.T) {
	failures := make(chan string, 100)
	runScenarios(t, map[string]scenario{"forbidden": {
		options: func() cache.Options {
			return cache.Options{DefaultWatchErrorHandler: func(_ context.Context, r *toolscache.Reflector, err error) {
				select {
				case failures <- classifyWatch(err):
				default:
				}
			}}
		},
		play: func(x *stage) {
			x.server.mu.Lock()
			x.server.refuse = func(*http.Request) (int, string) { return http.StatusForbidden, "no" }
			x.server.mu.Unlock()
			ctx, cancel := context.WithTimeout(x.ctx, 50*time.Millisecond)
			defer cancel()
			err := x.cache.Get(ctx, client.ObjectKey{Namespace: "north", Name: "a"}, &corev1.Pod{})
			x.note("get: %s, handler: %s", classify(err), <-failures)
		},
	}})
}

func classifyWatch(err error) string {
	if strings.Contains(err.Error(), "no") {
		return "told"
	}
	return err.Error()
}
