package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

// live gives a replica a context, and waits for its end.
func live[T any](t *testing.T, make func(ctx context.Context) (*tarn.Replica[T], error)) *tarn.Replica[T] {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := make(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-r.Done()
	})
	return r
}

func synced[T any](t *testing.T, r *tarn.Replica[T]) []tarn.Key {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(maps.Collect(r.All())))
}

// fast makes the waits between attempts short.
func fast[T any]() Option {
	return Configure(func(o *tarn.Options[T]) { o.Delay = func() time.Duration { return time.Millisecond } })
}

func (c *cluster) with(t *testing.T, opts ...Option) []Option {
	return append(opts, WithClient(c.client(t, nil)), Logger(slog.New(slog.NewTextHandler(io.Discard, nil))))
}

func TestReflect(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		for _, contentType := range []string{"", jsonType} {
			t.Run(fmt.Sprintf("watchList=%v/%s", watchList, contentType), func(t *testing.T) {
				c := newCluster(t)
				c.put("a", "one", "v1")
				c.put("b", "two", "v1")
				client := c.client(t, func(cfg *rest.Config) { cfg.ContentType = contentType })
				pods := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
					return Reflect[*corev1.Pod](ctx, nil, WithClient(client), WatchList(watchList))
				})
				if keys := synced(t, pods); !slices.Equal(keys, []tarn.Key{"a/one", "b/two"}) {
					t.Errorf("keys %v", keys)
				}
				if name := pods.Health().Name; name != "pods" {
					t.Errorf("name %q", name)
				}
				written := c.put("a", "one", "v2")
				if err := pods.WaitFor(t.Context(), tarn.Version(written.ResourceVersion)); err != nil {
					t.Fatal(err)
				}
				if got, _ := pods.Get("a/one"); !cmp.Equal(got, written) {
					t.Error(cmp.Diff(written, got))
				}
				paths := c.seen(func(r *http.Request) string {
					return strings.TrimSpace(r.URL.Path + " " + r.URL.Query().Get("sendInitialEvents"))
				})
				want := []string{"/api/v1", "/api/v1/pods true"}
				if !watchList {
					want = []string{"/api/v1", "/api/v1/pods", "/api/v1/pods"}
				}
				if diff := cmp.Diff(want, paths); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestReflectFallsBackToList(t *testing.T) {
	c := newCluster(t)
	c.noWatchList = true
	c.put("a", "one", "v1")
	pods := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
		return Reflect[*corev1.Pod](ctx, nil, c.with(t, WatchList(true))...)
	})
	if keys := synced(t, pods); len(keys) != 1 || !pods.Health().WatchListGivenUp {
		t.Errorf("keys %v, %v", keys, pods.Health())
	}
}

// Several namespaces are one copy, each read by itself.
func TestReflectNamespaces(t *testing.T) {
	c := newCluster(t)
	for _, namespace := range []string{"a", "b", "c"} {
		c.put(namespace, "one", "v1")
	}
	pods := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
		return Reflect[*corev1.Pod](ctx, nil, c.with(t, Namespaces("c", "a", "c"))...)
	})
	if keys := synced(t, pods); !slices.Equal(keys, []tarn.Key{"a/one", "c/one"}) {
		t.Errorf("keys %v", keys)
	}
	if n := len(c.seen(func(r *http.Request) string { return "" })); n != 3 {
		t.Errorf("%d requests: the resource is asked for once, each namespace is read once", n)
	}
	one := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
		return Reflect[*corev1.Pod](ctx, nil, c.with(t, Namespace("b"))...)
	})
	if keys := synced(t, one); !slices.Equal(keys, []tarn.Key{"b/one"}) || one.Health().Name != "pods (b)" {
		t.Errorf("keys %v of %s", keys, one.Health().Name)
	}
}

// A kind that is not served yet is waited for, and the error says what is missing.
func TestReflectKindThatComesLater(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		c := newCluster(t)
		c.served = false
		c.put("a", "one", "v1")
		failed := make(chan error, 100)
		opts := c.with(t, fast[*corev1.Pod](), OnError(func(_ context.Context, err error) {
			select {
			case failed <- err:
			default:
			}
		}))
		if mapped {
			opts = append(opts, Mapper(&lateMapper{c: c}))
		}
		pods := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
			return Reflect[*corev1.Pod](ctx, nil, opts...)
		})
		if err := <-failed; !strings.Contains(err.Error(), "the server does not serve v1 Pod: is its CRD installed") {
			t.Error(err)
		}
		c.set(func() { c.served = true })
		if keys := synced(t, pods); len(keys) != 1 {
			t.Errorf("keys %v", keys)
		}
	}
}

// lateMapper knows pods when it is reset after they are served.
type lateMapper struct {
	meta.RESTMapper
	c     *cluster
	known bool
}

func (m *lateMapper) Reset() {
	m.c.set(func() { m.known = m.c.served })
}

func (m *lateMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if !m.known {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return &meta.RESTMapping{Resource: podResource, Scope: meta.RESTScopeNamespace}, nil
}

// A transform owns its input; its result is stored.
func TestReflectTransform(t *testing.T) {
	c := newCluster(t)
	for i := range 20 {
		c.put("a", fmt.Sprint("pod-", i), "v1")
	}
	pods := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
		return Reflect[*corev1.Pod](ctx, nil, c.with(t, Resource(podResource), Transform(func(p *corev1.Pod) (*corev1.Pod, error) {
			p.Spec.Containers[0].Image += " of " + p.Name
			return p, nil
		}))...)
	})
	synced(t, pods)
	for _, p := range pods.All() {
		if want := "v1 of " + p.Name; p.Spec.Containers[0].Image != want {
			t.Errorf("%s has %q", p.Name, p.Spec.Containers[0].Image)
		}
	}
}

func TestReflectOptionsReachTheServer(t *testing.T) {
	c := newCluster(t)
	c.put("a", "one", "v1")
	pods := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
		return Reflect[*corev1.Pod](ctx, nil, c.with(t, Resource(podResource), LabelSelector("a=b"), FieldSelector("c=d"), PageSize(7), WatchList(false), Name("mine"), DropManagedFields())...)
	})
	synced(t, pods)
	query := c.first().URL.Query()
	if query.Get("labelSelector") != "a=b" || query.Get("fieldSelector") != "c=d" || query.Get("limit") != "7" {
		t.Errorf("query %v", query)
	}
	if pods.Health().Name != "mine" {
		t.Errorf("name %s", pods.Health().Name)
	}
	if p, _ := pods.Get("a/one"); p.ManagedFields != nil {
		t.Errorf("managed fields: %v", p.ManagedFields)
	}
}

func TestReflectBadObjects(t *testing.T) {
	c := newCluster(t)
	c.put("a", "one", "v1")
	c.put("a", "long", strings.Repeat("x", 1000))
	bad := make(chan tarn.BadObject, 1)
	pods := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
		return Reflect[*corev1.Pod](ctx, nil, c.with(t, MaxItem(800), OnBad(func(_ context.Context, b tarn.BadObject) { bad <- b }))...)
	})
	if keys := synced(t, pods); !slices.Equal(keys, []tarn.Key{"a/one"}) {
		t.Errorf("keys %v", keys)
	}
	if b := <-bad; b.Key != "a/long" || !errors.Is(b.Err, tarn.ErrUndecodable) {
		t.Errorf("bad %v", b)
	}
}

func TestReflectResourceAndMetadata(t *testing.T) {
	c := newCluster(t)
	c.put("a", "one", "v1")
	untyped := live(t, func(ctx context.Context) (*tarn.Replica[*unstructured.Unstructured], error) {
		return ReflectResource(ctx, nil, podResource, c.with(t)...)
	})
	synced(t, untyped)
	if u, _ := untyped.Get("a/one"); u.GetKind() != "Pod" || u.GetAPIVersion() != "v1" || u.GetName() != "one" {
		t.Errorf("unstructured: %v", u)
	}
	partial := live(t, func(ctx context.Context) (*tarn.Replica[*metav1.PartialObjectMetadata], error) {
		return ReflectMetadata(ctx, nil, podResource, c.with(t)...)
	})
	synced(t, partial)
	if p, _ := partial.Get("a/one"); p.Name != "one" || p.Kind != "" {
		t.Errorf("metadata: %v", p)
	}
}

func TestReflectMistakes(t *testing.T) {
	ctx := t.Context()
	cfg := &rest.Config{Host: "nowhere"}
	several := runtime.NewScheme()
	several.AddKnownTypeWithName(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "A"}, &corev1.Pod{})
	several.AddKnownTypeWithName(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "B"}, &corev1.Pod{})
	podsObject := pods.Object
	pods := func(opts ...Option) error { _, err := Reflect[*corev1.Pod](ctx, cfg, opts...); return err }
	for _, test := range []struct {
		want string
		err  error
	}{
		{"use a pointer to a struct", func() error { _, err := Reflect[corev1.Pod](ctx, cfg); return err }()},
		{"is not a runtime.Object", func() error { _, err := Reflect[*time.Time](ctx, cfg); return err }()},
		{"name the resource", func() error { _, err := Reflect[*unstructured.Unstructured](ctx, cfg); return err }()},
		{"the scheme does not know *v1.Pod", pods(Scheme(runtime.NewScheme()))},
		{"the scheme is nil", pods(Scheme(nil))},
		{"stands for several kinds", pods(Scheme(several))},
		{"names all namespaces beside single ones", pods(Namespaces("a", ""))},
		{"the transform is a func(*v1.Deployment)", pods(Transform(func(d *appsv1.Deployment) (*appsv1.Deployment, error) { return d, nil }))},
		{"Configure has a func(*tarn.Options[", pods(Configure(func(*tarn.Options[int]) {}))},
		{"cannot be part of a path", pods(Resource(podResource), Namespace("a/b"))},
		{"needs a resource and its version", pods(Resource(schema.GroupVersionResource{Resource: "pods"}))},
		{"the config is nil", func() error { _, err := Reflect[*corev1.Pod](ctx, nil); return err }()},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%v, want %q", test.err, test.want)
		}
	}
	if _, err := NewSource[*corev1.Node](&Client{}, Collection{Resource: podResource, Object: podsObject}, SourceOptions{}); err == nil || !strings.Contains(err.Error(), ", not *v1.Node") {
		t.Error(err)
	}
}

func TestReflectNamespaceOfSomethingThatHasNone(t *testing.T) {
	c := newCluster(t)
	nodes := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Node], error) {
		return Reflect[*corev1.Node](ctx, nil, c.with(t, Namespace("a"), fast[*corev1.Node]())...)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := nodes.WaitSynced(ctx); err == nil || !strings.Contains(err.Error(), `nodes have no namespaces: leave "a" out`) {
		t.Error(err)
	}
}

// The server says which resource a kind has; a failure of that lookup is reported
// like any other.
func TestDiscoveryFailures(t *testing.T) {
	for _, test := range []struct {
		handle http.HandlerFunc
		want   string
	}{
		{func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }, "cannot read the resources of example.com/v1"},
		{func(w http.ResponseWriter, r *http.Request) { answer(w, jsonType, []byte("?")) }, "is malformed"},
		{func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "the server does not serve example.com/v1 Mouse"},
	} {
		s := serve(t, false, test.handle)
		failed := make(chan error, 1)
		mice := live(t, func(ctx context.Context) (*tarn.Replica[*unstructured.Unstructured], error) {
			return Reflect[*unstructured.Unstructured](ctx, nil, WithClient(s.client(t, nil)),
				Kind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Mouse"}),
				OnError(func(_ context.Context, err error) {
					select {
					case failed <- err:
					default:
					}
				}))
		})
		if err := <-failed; !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
		if name := mice.Health().Name; name != "mouses.example.com" && name != "mice.example.com" {
			t.Errorf("name %s", name)
		}
	}
}
