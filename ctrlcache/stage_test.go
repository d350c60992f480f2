package ctrlcache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/ctrlcache"
)

type maker struct {
	name string
	make cache.NewCacheFunc
}

// theirs and ours are the caches that every scenario runs through.
var makers = []maker{
	{"controller-runtime", cache.New},
	{"controller-runtime on our informers", func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		if opts.NewInformer == nil {
			opts.NewInformer = ctrlcache.NewInformer
		}
		return cache.New(cfg, opts)
	}},
	{"ours", ctrlcache.NewCache},
	{"ours on client-go's informers", func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		if opts.NewInformer == nil {
			opts.NewInformer = toolscache.NewSharedIndexInformer
		}
		return ctrlcache.NewCache(cfg, opts)
	}},
}

// scenario is a play with one cache; what was seen must be the same with all.
type scenario struct {
	options func() cache.Options
	// before is played before the cache starts.
	before func(*stage)
	play   func(*stage)
	// better is what ours shows, where it differs on purpose. Empty is the same.
	better string
}

// stage is where a scenario is played, with what has been seen so far.
type stage struct {
	testing.TB
	ctx    context.Context
	server *apiServer
	cache  cache.Cache
	mu     sync.Mutex
	seen   []string
}

func (x *stage) note(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen = append(x.seen, fmt.Sprintf(format, args...))
}

func runScenarios(t *testing.T, scenarios map[string]scenario) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs := s.run(t, makers[0].make)
			for _, m := range makers[1:] {
				want := theirs
				if s.better != "" && strings.HasPrefix(m.name, "ours") {
					want = strings.TrimSpace(strings.ReplaceAll(s.better, "\t", ""))
				}
				if diff := cmp.Diff(want, s.run(t, m.make)); diff != "" {
					t.Errorf("%s (-wanted +got):\n%s", m.name, diff)
				}
			}
			if t.Failed() {
				t.Logf("controller-runtime:\n%s", theirs)
			}
		})
	}
}

func (s scenario) run(t *testing.T, make cache.NewCacheFunc) string {
	server := newAPIServer(t)
	seed(server)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	opts := cache.Options{}
	if s.options != nil {
		opts = s.options()
	}
	if opts.Mapper == nil {
		opts.Mapper = newMapper()
	}
	c, err := make(server.config(), opts)
	if err != nil {
		return "not made: " + classify(err)
	}
	x := &stage{TB: t, ctx: ctx, server: server, cache: c}
	if s.before != nil {
		s.before(x)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Errorf("Start: %v", err)
		}
	})
	defer running.Wait()
	defer cancel()
	if !c.WaitForCacheSync(ctx) {
		t.Error("the cache does not sync")
	}
	s.play(x)
	if ctx.Err() != nil {
		t.Error("the scenario took too long")
	}
	return strings.Join(x.seen, "\n")
}

// seed is what every scenario begins with.
func seed(s *apiServer) {
	s.put("nodes", object("", "n1", nil))
	s.put("pods", pod("north", "a", "n1", "Running", "deep"))
	s.put("pods", pod("north", "b", "n2", "Pending", "deep"))
	s.put("pods", pod("south", "a", "n1", "Pending", "shallow"))
	s.put("pods", pod("south", "c", "n3", "Running", ""))
	s.put("pods", pod("west", "d", "n1", "Failed", "deep"))
	s.put("lakes", object("north", "baikal", map[string]any{"depth": int64(1642), "salty": false}))
	s.put("lakes", object("south", "titicaca", map[string]any{"depth": int64(281), "salty": false}))
	s.put("configmaps", object("north", "settings", nil))
}

func object(namespace, name string, spec map[string]any) map[string]any {
	o := map[string]any{"metadata": map[string]any{
		"name": name, "managedFields": []any{map[string]any{"manager": "test", "operation": "Update"}},
	}}
	if namespace != "" {
		o["metadata"].(map[string]any)["namespace"] = namespace
	}
	if spec != nil {
		o["spec"] = spec
	}
	return o
}

func pod(namespace, name, node, phase, lake string) map[string]any {
	o := object(namespace, name, map[string]any{"nodeName": node, "containers": []any{map[string]any{"name": "main"}}})
	o["status"] = map[string]any{"phase": phase}
	if lake != "" {
		o["metadata"].(map[string]any)["labels"] = map[string]any{"lake": lake, "app.example.com/kind": "x"}
	}
	return o
}

var lakeKind = resources["lakes"]

func emptyLake() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(lakeKind)
	return u
}

func emptyLakes() *unstructured.UnstructuredList {
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(lakeKind.GroupVersion().WithKind("LakeList"))
	return u
}

func emptyMetadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}

func emptyMetadatas(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	m := &metav1.PartialObjectMetadataList{}
	m.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return m
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// classify tells errors apart as far as callers do.
func classify(err error) string {
	notCached, noMatch := &cache.ErrResourceNotCached{}, &meta.NoKindMatchError{}
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &notCached):
		return "not cached: " + notCached.GVK.Kind
	case errors.As(err, new(*cache.ErrCacheNotStarted)):
		return "cache not started"
	case errors.As(err, &noMatch):
		return "no match for " + noMatch.GroupKind.Kind
	case apierrors.IsNotFound(err):
		return "not found: " + err.Error()
	case apierrors.IsTimeout(err):
		return "timeout"
	case runtime.IsNotRegisteredError(err), runtime.IsMissingKind(err):
		return "kind not known"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "context ended"
	}
	return "error"
}

func (x *stage) get(out client.Object, namespace, name string, opts ...client.GetOption) {
	err := x.cache.Get(x.ctx, client.ObjectKey{Namespace: namespace, Name: name}, out, opts...)
	if err != nil {
		x.note("get %T %s/%s: %s", out, namespace, name, classify(err))
		return
	}
	x.note("get %s", show(out))
}

func (x *stage) list(out client.ObjectList, opts ...client.ListOption) {
	if err := x.cache.List(x.ctx, out, opts...); err != nil {
		x.note("list %T: %s", out, classify(err))
		return
	}
	items, err := meta.ExtractList(out)
	if err != nil {
		x.Error(err)
	}
	var all []string
	for _, item := range items {
		all = append(all, show(item.(client.Object)))
	}
	slices.Sort(all)
	x.note("list %T continue=%q version=%q:\n  %s", out, out.GetContinue(), out.GetResourceVersion(), strings.Join(all, "\n  "))
}

// show is all of an object that a scenario may depend on.
func show(o client.Object) string {
	line := fmt.Sprintf("%T %s %s/%s@%s labels=%v managers=%d", o, o.GetObjectKind().GroupVersionKind(),
		o.GetNamespace(), o.GetName(), o.GetResourceVersion(), o.GetLabels(), len(o.GetManagedFields()))
	switch o := o.(type) {
	case *corev1.Pod:
		line += fmt.Sprintf(" node=%s phase=%s", o.Spec.NodeName, o.Status.Phase)
	case *unstructured.Unstructured:
		line += fmt.Sprintf(" spec=%v", o.Object["spec"])
	}
	return line
}

// until waits for something that the cache will come to by itself.
func (x *stage) until(what string, reached func() bool) {
	err := wait.PollUntilContextCancel(x.ctx, 2*time.Millisecond, true, func(context.Context) (bool, error) { return reached(), nil })
	if err != nil {
		x.Errorf("never came: %s", what)
	}
}
