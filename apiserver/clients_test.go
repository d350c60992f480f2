package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var widgets = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}

// inBubble runs a test with a server in a bubble of virtual time: watches with
// their timeouts and bookmarks take no time at all.
func inBubble(t *testing.T, options Options, test func(*testing.T, *Server)) {
	synctest.Test(t, func(t *testing.T) {
		server := New(options)
		defer server.Close()
		test(t, server)
	})
}

func protobufConfig(s *Server) *rest.Config {
	config := s.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func configMapNamed(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}, Data: map[string]string{"k": "v"}}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// An informer that client-go made ends up with what is there, over the whole
// life of an object, whatever the encoding and however much of objects it wants.
func TestInformersOfClientGo(t *testing.T) {
	type build func(*testing.T, *Server) cache.SharedIndexInformer
	typed := func(config func(*Server) *rest.Config) build {
		return func(t *testing.T, s *Server) cache.SharedIndexInformer {
			factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config(s)), 0)
			return factory.Core().V1().ConfigMaps().Informer()
		}
	}
	gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
	for name, informer := range map[string]build{
		"typed, json":     typed((*Server).Config),
		"typed, protobuf": typed(protobufConfig),
		"dynamic": func(t *testing.T, s *Server) cache.SharedIndexInformer {
			return dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(s.Config()), 0).ForResource(gvr).Informer()
		},
		"metadata": func(t *testing.T, s *Server) cache.SharedIndexInformer {
			return metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(s.Config()), 0).ForResource(gvr).Informer()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, server *Server) {
				client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
				must[*corev1.ConfigMap](t)(client.Create(t.Context(), configMapNamed("early", nil), metav1.CreateOptions{}))

				var seen []string
				watcher := informer(t, server)
				note := func(what string, object any) {
					if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
						object = gone.Obj
					}
					metadata, err := meta.Accessor(object)
					if err != nil {
						t.Error(err)
						return
					}
					seen = append(seen, fmt.Sprint(what, " ", metadata.GetName(), " ", metadata.GetLabels()["l"]))
				}
				handler := cache.ResourceEventHandlerFuncs{
					AddFunc:    func(o any) { note("add", o) },
					UpdateFunc: func(_, o any) { note("update", o) },
					DeleteFunc: func(o any) { note("delete", o) },
				}
				if _, err := watcher.AddEventHandler(handler); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); watcher.RunWithContext(ctx) }()
				defer func() { cancel(); <-done }()
				if !cache.WaitForCacheSync(ctx.Done(), watcher.HasSynced) {
					t.Fatal("not synced")
				}
				must[*corev1.ConfigMap](t)(client.Create(t.Context(), configMapNamed("late", nil), metav1.CreateOptions{}))
				time.Sleep(20 * time.Minute) // through timeouts and new watches
				patch := []byte(`{"metadata":{"labels":{"l":"x"}}}`)
				must[*corev1.ConfigMap](t)(client.Patch(t.Context(), "early", types.StrategicMergePatchType, patch, metav1.PatchOptions{}))
				if err := client.Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				want := []string{"add early ", "add late ", "update early x", "delete late "}
				if !slices.Equal(seen, want) {
					t.Errorf("seen %q, want %q", seen, want)
				}
			})
		})
	}
}

func TestTypedClient(t *testing.T) {
	for name, config := range map[string]func(*Server) *rest.Config{"json": (*Server).Config, "protobuf": protobufConfig} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, server *Server) {
				ctx := t.Context()
				client := kubernetes.NewForConfigOrDie(config(server))
				pods := client.CoreV1().Pods("default")
				pod := must[*corev1.Pod](t)(pods.Create(ctx, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Finalizers: []string{"x.io/y"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				}, metav1.CreateOptions{}))
				if pod.Status.Phase != corev1.PodPending || pod.Generation != 1 || pod.UID == "" || len(pod.Name) != 7 || pod.CreationTimestamp.IsZero() {
					t.Errorf("created: %+v", pod)
				}
				stale := pod.DeepCopy()
				pod.Spec.NodeName = "n"
				pod.Status.Phase = corev1.PodRunning
				pod = must[*corev1.Pod](t)(pods.Update(ctx, pod, metav1.UpdateOptions{}))
				if pod.Status.Phase != corev1.PodPending || pod.Generation != 2 {
					t.Errorf("an update of the spec: %s, generation %d", pod.Status.Phase, pod.Generation)
				}
				if _, err := pods.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
					t.Errorf("an update of an old version: %v", err)
				}
				pod.Status.Phase = corev1.PodRunning
				pod.Spec.NodeName = "other"
				pod = must[*corev1.Pod](t)(pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}))
				if pod.Status.Phase != corev1.PodRunning || pod.Spec.NodeName != "n" || pod.Generation != 2 {
					t.Errorf("an update of the status: %s on %s, generation %d", pod.Status.Phase, pod.Spec.NodeName, pod.Generation)
				}
				list := must[*corev1.PodList](t)(pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=n,status.phase=Running"}))
				if len(list.Items) != 1 || list.Items[0].Name != pod.Name {
					t.Errorf("selected: %d", len(list.Items))
				}
				uid := types.UID("other")
				if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); !apierrors.IsConflict(err) {
					t.Errorf("a delete of another uid: %v", err)
				}
				if err := pods.Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID))); err != nil {
					t.Error(err)
				}
				pod = must[*corev1.Pod](t)(pods.Get(ctx, pod.Name, metav1.GetOptions{}))
				if pod.DeletionTimestamp == nil {
					t.Error("a finalizer does not keep the pod, or it is not marked")
				}
				pod.Finalizers = nil
				must[*corev1.Pod](t)(pods.Update(ctx, pod, metav1.UpdateOptions{}))
				if _, err := pods.Get(ctx, pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("after the last finalizer: %v", err)
				}
				if err := client.CoreV1().Secrets("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A pod that could not be scheduled says so no longer once it is bound.
func TestBinding(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	refused := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{refused}}}
	if err := server.Put(pod); err != nil {
		t.Fatal(err)
	}
	pods := kubernetes.NewForConfigOrDie(protobufConfig(server)).CoreV1().Pods("default")
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	if err := pods.Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bound := must[*corev1.Pod](t)(pods.Get(t.Context(), "p", metav1.GetOptions{}))
	if len(bound.Status.Conditions) != 1 || bound.Status.Conditions[0].Status != corev1.ConditionTrue || bound.Spec.NodeName != "n" {
		t.Errorf("on %q, %v", bound.Spec.NodeName, bound.Status.Conditions)
	}
}

func TestDynamicClientAndDefinition(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		if err := server.Register(Kind{Group: "example.org", Version: "v1", Kind: "Widget"}); err != nil {
			t.Fatal(err)
		}
		client := dynamic.NewForConfigOrDie(server.Config()).Resource(widgets).Namespace("default")
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "w"}, "spec": map[string]any{"size": int64(1), "deep": []any{map[string]any{"a": "b"}}},
		}}
		created := must[*unstructured.Unstructured](t)(client.Create(t.Context(), widget, metav1.CreateOptions{}))
		if size, _, _ := unstructured.NestedInt64(created.Object, "spec", "size"); size != 1 || created.GetGeneration() != 1 {
			t.Errorf("created: %v", created)
		}
		list := must[*unstructured.UnstructuredList](t)(client.List(t.Context(), metav1.ListOptions{}))
		if len(list.Items) != 1 || list.GetKind() != "WidgetList" {
			t.Errorf("list: %v", list)
		}
		parts := must[*metav1.PartialObjectMetadataList](t)(metadata.NewForConfigOrDie(server.Config()).Resource(widgets).List(t.Context(), metav1.ListOptions{}))
		if len(parts.Items) != 1 || parts.Items[0].Name != "w" {
			t.Errorf("metadata: %v", parts)
		}
	})
}

// Every kind that client-go knows and a current server serves can be created,
// read and listed in every version, in both encodings.
func TestEveryKind(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	client := dynamic.NewForConfigOrDie(server.Config())
	groups, lists, err := discovery.NewDiscoveryClientForConfigOrDie(server.Config()).ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) < 20 {
		t.Errorf("%d groups", len(groups))
	}
	served := map[schema.GroupVersionKind]bool{}
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if len(r.Verbs) < 6 {
				continue
			}
			served[gv.WithKind(r.Kind)] = true
			name := "x-" + gv.Version + strings.ReplaceAll(gv.Group, ".", "-")
			var at dynamic.ResourceInterface = client.Resource(gv.WithResource(r.Name))
			if r.Namespaced {
				at = client.Resource(gv.WithResource(r.Name)).Namespace("default")
			}
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
			object.SetGroupVersionKind(gv.WithKind(r.Kind))
			if r.Kind == "CustomResourceDefinition" {
				continue
			}
			if _, err := at.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Errorf("%s: %v", gv.WithKind(r.Kind), err)
				continue
			}
			for _, media := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
				config := server.Config()
				config.AcceptContentTypes = media
				config.GroupVersion, config.APIPath = &gv, "/apis"
				if gv.Group == "" {
					config.APIPath = "/api"
				}
				config.NegotiatedSerializer = codecs
				rest, err := rest.RESTClientFor(config)
				if err != nil {
					t.Fatal(err)
				}
				found, err := rest.Get().Resource(r.Name).Do(t.Context()).Get()
				if err != nil {
					t.Errorf("list %s in %s: %v", gv.WithKind(r.Kind), media, err)
				} else if n := meta.LenList(found); n == 0 {
					t.Errorf("list %s in %s: nothing", gv.WithKind(r.Kind), media)
				}
			}
		}
	}
	for gvk := range scheme.AllKnownTypes() {
		if scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) && !served[gvk] && !removed[gvk.GroupVersion().String()] && !slices.Contains(removedKinds, gvk.Kind) && gvk.Version != runtime.APIVersionInternal {
			t.Errorf("%s is not served; add it to builtin.txt, or say here that servers no longer have it", gvk)
		}
	}
}
