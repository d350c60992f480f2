//go:build !race

// These tests write to shared objects on purpose. Each such write is a data race, which
// the race detector reports; so they are built without it.

package ctrlcache_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	tarncache "github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
	"github.com/tarnproject/tarn/kube"
)

// holder is one of the ways to hold objects that share memory.
type holder func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding)

// holding is what a holder has sent about its objects, and what was reported.
type holding struct {
	health func() tarn.Health
	wait   func()

	mu      sync.Mutex
	objects map[string]any
	updates int
	reports []string
}

func (h *holding) take(object any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	accessor := object.(metav1.Object)
	h.objects[accessor.GetNamespace()+"/"+accessor.GetName()] = object
	h.updates++
}

func (h *holding) report(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, text)
}

func (h *holding) pod(t *testing.T, name string) *corev1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := h.objects["default/"+name].(type) {
	case *corev1.Pod:
		return o
	case *unstructured.Unstructured:
		pod := new(corev1.Pod)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
			t.Fatal(err)
		}
		return pod
	default:
		t.Fatalf("%s is a %T", name, o)
		return nil
	}
}

func replicaOf[T any](replica *tarn.Replica[T], err error, t *testing.T, ctx context.Context, h *holding) {
	if err != nil {
		t.Fatal(err)
	}
	h.health = replica.Health
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range replica.Changes(ctx) {
			h.take(c.Object)
		}
	}()
	h.wait = func() { <-done; <-replica.Done() }
}

func watchInformer(t *testing.T, ctx context.Context, informer toolscache.SharedIndexInformer, h *holding) {
	replica, ok := tarncache.ReplicaOf(informer)
	if !ok {
		t.Fatalf("%T is not ours", informer)
	}
	h.health = replica.Health
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    h.take,
		UpdateFunc: func(_, object any) { h.take(object) },
	})
	if err != nil {
		t.Fatal(err)
	}
}

func reportTo(h *holding) kube.Option {
	return kube.OnError(func(_ context.Context, err error) { h.report(err.Error()) })
}

var podsGVR = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

var holders = map[string]holder{
	"kube.Reflect": func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding) {
		replica, err := kube.Reflect[*corev1.Pod](ctx, cfg, reportTo(h))
		replicaOf(replica, err, t, ctx, h)
	},
	"kube.ReflectResource": func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding) {
		replica, err := kube.ReflectResource(ctx, cfg, podsGVR, reportTo(h))
		replicaOf(replica, err, t, ctx, h)
	},
	"kube.Reflect with a transform": func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding) {
		replica, err := kube.Reflect[*corev1.Pod](ctx, cfg, reportTo(h), kube.Transform(func(p *corev1.Pod) (*corev1.Pod, error) { return p, nil }))
		replicaOf(replica, err, t, ctx, h)
	},
	"informers of a config": func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding) {
		factory, err := informers.NewSharedInformerFactoryForConfig(cfg, 0)
		if err != nil {
			t.Fatal(err)
		}
		watchInformer(t, ctx, factory.Core().V1().Pods().Informer(), h)
		factory.Start(ctx.Done())
		h.wait = factory.Shutdown
	},
	"informers of a clientset": func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding) {
		factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(cfg), 0)
		watchInformer(t, ctx, factory.Core().V1().Pods().Informer(), h)
		factory.Start(ctx.Done())
		h.wait = factory.Shutdown
	},
	"dynamic informers of a config": func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding) {
		factory, err := dynamicinformer.NewFactoryForConfig(cfg, 0, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		watchInformer(t, ctx, factory.ForResource(podsGVR).Informer(), h)
		factory.Start(ctx.Done())
		h.wait = factory.Shutdown
	},
	"dynamic informers of a client": func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding) {
		factory := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(cfg), 0)
		watchInformer(t, ctx, factory.ForResource(podsGVR).Informer(), h)
		factory.Start(ctx.Done())
		h.wait = factory.Shutdown
	},
	"ctrlcache": func(t *testing.T, ctx context.Context, cfg *rest.Config, h *holding) {
		c, err := ctrlcache.NewCache(cfg, cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Start(ctx)
		}()
		informer, err := c.GetInformer(ctx, &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		watchInformer(t, ctx, informer.(toolscache.SharedIndexInformer), h)
		h.wait = func() { <-done }
	},
}

// templated is the nth pod of a template.
func templatedPod(n int) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("web-", n),
			Labels:      map[string]string{"app": "web", "tier": "front"},
			Annotations: map[string]string{"team": "shop", "note": "a note that all pods of the template have"},
			Finalizers:  []string{"example.com/a", "example.com/b"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: types.UID("5f0b"), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName:                      fmt.Sprint("node-", n%3),
			TerminationGracePeriodSeconds: ptr.To(int64(30)),
			Containers: []corev1.Container{
				{Name: "web", Image: "registry.example.com/web:1", Env: []corev1.EnvVar{{Name: "A", Value: "one"}, {Name: "B", Value: "two"}}},
				{Name: "sidecar", Image: "registry.example.com/sidecar:1"},
			},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To(int64(300))},
			},
		},
		Status: corev1.PodStatus{Phase: "Running", PodIP: fmt.Sprint("10.0.0.", n)},
	}
}

const templatedPods = 20

// withHolder lets a test play with objects that a holder holds, in time that does not
// pass by itself.
func withHolder(t *testing.T, test func(t *testing.T, server *apiserver.Server, h *holding)) {
	for name, hold := range holders {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				for n := range templatedPods {
					if err := server.Put(templatedPod(n)); err != nil {
						t.Fatal(err)
					}
				}
				h := &holding{objects: map[string]any{}}
				before := utilruntime.ErrorHandlers
				utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, msg string, values ...any) {
					h.report(fmt.Sprint(msg, err, values))
				}}
				defer func() { utilruntime.ErrorHandlers = before }()
				ctx, cancel := context.WithCancel(t.Context())
				hold(t, ctx, server.Config(), h)
				// Verifiers look every five seconds; a test that begins between two of their
				// looks has seen its own write before they do.
				time.Sleep(12 * time.Second)
				if len(h.objects) != templatedPods {
					t.Fatalf("%d of %d pods", len(h.objects), templatedPods)
				}
				test(t, server, h)
				cancel()
				h.wait()
			})
		})
	}
}

// equal says whether all objects are what the server has.
func (h *holding) equal(t *testing.T, server *apiserver.Server) bool {
	t.Helper()
	list, err := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same := true
	for _, want := range list.Items {
		got := h.pod(t, want.Name).DeepCopy()
		got.TypeMeta = metav1.TypeMeta{}
		same = same && reflect.DeepEqual(got, &want)
	}
	return same
}

// write does to web-3 what a program does by mistake.
func (h *holding) write(typed func(*corev1.Pod), free func(map[string]any)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := h.objects["default/web-3"].(type) {
	case *corev1.Pod:
		typed(o)
	case *unstructured.Unstructured:
		free(o.Object)
	}
}

// Writing to metadata, or to a number that is pointed to, changes one object.
func TestStrayWriteToMetadata(t *testing.T) {
	withHolder(t, func(t *testing.T, server *apiserver.Server, h *holding) {
		h.write(func(p *corev1.Pod) {
			*p.OwnerReferences[0].Controller = false
			p.OwnerReferences[0].Name = "seen"
			p.Labels["seen"], p.Annotations["seen"], p.Finalizers[0] = "yes", "yes", "seen"
			*p.Spec.TerminationGracePeriodSeconds = 7
		}, func(o map[string]any) {
			m := o["metadata"].(map[string]any)
			m["ownerReferences"].([]any)[0].(map[string]any)["controller"] = false
			m["labels"].(map[string]any)["seen"] = "yes"
			m["annotations"].(map[string]any)["seen"] = "yes"
			m["finalizers"].([]any)[0] = "seen"
		})
		if err := server.Put(templatedPod(templatedPods)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for n := range templatedPods + 1 {
			pod, want := h.pod(t, fmt.Sprint("web-", n)), templatedPod(n)
			whole := metav1.GetControllerOf(pod) != nil && reflect.DeepEqual(pod.Labels, want.Labels) && reflect.DeepEqual(pod.Annotations, want.Annotations) &&
				reflect.DeepEqual(pod.Finalizers, want.Finalizers) && *pod.Spec.TerminationGracePeriodSeconds == 30
			if whole != (n != 3) {
				t.Errorf("web-%d is whole: %v", n, whole)
			}
		}
	})
}

var reportedField = regexp.MustCompile(`field spec[a-z.]*`)

// A write to a part that pods of a template share is found although no event comes.
// It is reported without values and repaired, and handlers are notified.
func TestStrayWriteIsRepaired(t *testing.T) {
	withHolder(t, func(t *testing.T, server *apiserver.Server, h *holding) {
		h.write(func(p *corev1.Pod) { p.Spec.Tolerations[0].Key = "stray-value" }, func(o map[string]any) {
			o["spec"].(map[string]any)["tolerations"].([]any)[0].(map[string]any)["key"] = "stray-value"
		})
		if h.equal(t, server) {
			t.Fatal("the write does not show")
		}
		updates := h.updates
		time.Sleep(10 * time.Minute)
		if !h.equal(t, server) {
			t.Errorf("after ten minutes the objects are not what the server has")
		}
		health := h.health()
		if d := health.Damage; d.Found == 0 || d.Found != d.Repaired || d.Waiting != 0 {
			t.Errorf("health: %+v", d)
		} else if h.updates-updates != int(d.Found) {
			t.Errorf("%d objects were damaged, %d updates told", d.Found, h.updates-updates)
		}
		for _, d := range health.Damage.Recent {
			if !strings.HasPrefix(string(d.Key), "default/web-") || !strings.HasPrefix(d.Field, "spec") {
				t.Errorf("damage %+v", d)
			}
		}
		// The written list lies in a part of its own, and in the spec, which pods of one
		// node may share as a whole: which of the two a pod is damaged by depends on the
		// order in which they were read. Each field is reported once.
		fields := map[string]int{}
		for _, report := range h.reports {
			fields[reportedField.FindString(report)]++
			if !strings.Contains(report, "default/web-") {
				t.Errorf("a report without a key: %q", report)
			}
		}
		if len(fields) == 0 || fields[""] > 0 || slices.Max(slices.Collect(maps.Values(fields))) > 1 {
			t.Errorf("reports %q", h.reports)
		}
		if slices.ContainsFunc(h.reports, func(r string) bool { return strings.Contains(r, "stray-value") || strings.Contains(r, "not-ready") }) {
			t.Errorf("values are reported: %q", h.reports)
		}
		if n := health.Lists["damaged"]; n > 0 {
			t.Errorf("%d lists, want single reads", n)
		}
	})
}

// Updates do not hand a write on for longer than a minute.
func TestStrayWriteEndsWithUpdates(t *testing.T) {
	withHolder(t, func(t *testing.T, server *apiserver.Server, h *holding) {
		h.write(func(p *corev1.Pod) {
			slices.Reverse(p.Spec.Containers)
			p.Spec.NodeName = "stray-value"
		}, func(o map[string]any) {
			spec := o["spec"].(map[string]any)
			slices.Reverse(spec["containers"].([]any))
			spec["nodeName"] = "stray-value"
		})
		pods := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().Pods("default")
		for n := range 15 {
			pod, err := pods.Get(t.Context(), "web-3", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pod.Status.Message = fmt.Sprint("update ", n)
			if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if got := h.pod(t, "web-3"); got.Spec.NodeName != "node-0" || got.Spec.Containers[0].Name != "web" {
			t.Errorf("after updates for a minute: node %q, first container %q", got.Spec.NodeName, got.Spec.Containers[0].Name)
		}
	})
}
