package apiserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestNamespaces(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		ctx := t.Context()
		client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1()
		if _, err := client.ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("create in a namespace that is not there: %v", err)
		}
		must[*corev1.Namespace](t)(client.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))
		for _, object := range []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{"x.io/y"}}}} {
			must[*corev1.ConfigMap](t)(client.ConfigMaps("shop").Create(ctx, object, metav1.CreateOptions{}))
		}
		if err := client.Namespaces().Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := names(must[*corev1.ConfigMapList](t)(client.ConfigMaps("shop").List(ctx, metav1.ListOptions{}))); got != "kept" {
			t.Errorf("left in the namespace: %s", got)
		}
		if namespace := must[*corev1.Namespace](t)(client.Namespaces().Get(ctx, "shop", metav1.GetOptions{})); namespace.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("phase %s", namespace.Status.Phase)
		}
		_, err := client.ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Errorf("create in a namespace that is on its way out: %v", err)
		}
		must[*corev1.ConfigMap](t)(client.ConfigMaps("shop").Patch(ctx, "kept", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
		if _, err := client.Namespaces().Get(ctx, "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("an empty namespace stays: %v", err)
		}
		if err := client.Namespaces().Delete(ctx, "default", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("delete of the default namespace: %v", err)
		}
	})
	inBubble(t, Options{AnyNamespace: true}, func(t *testing.T, server *Server) {
		client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1()
		must[*corev1.ConfigMap](t)(client.ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}))
	})
}

// A definition that goes takes its objects with it, waits for their finalizers,
// and ends the watches.
func TestDefinitionGoes(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		if err := server.Register(Kind{Group: "example.org", Version: "v1", Kind: "Widget", Cluster: true}); err != nil {
			t.Fatal(err)
		}
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "finalizers": []any{"x.io/y"}},
		}}
		if err := server.Put(widget); err != nil {
			t.Fatal(err)
		}
		client := dynamic.NewForConfigOrDie(server.Config()).Resource(widgets)
		stream, err := client.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Delete(Kind{Group: "example.org", Version: "v1", Kind: "Widget"}.definition()); err != nil {
			t.Fatal(err)
		}
		if found, err := client.Get(t.Context(), "w", metav1.GetOptions{}); err != nil || found.GetDeletionTimestamp() == nil {
			t.Errorf("an object with a finalizer: %v", err)
		}
		if _, err := client.Patch(t.Context(), "w", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		var told []string
		for event := range stream.ResultChan() {
			told = append(told, string(event.Type))
		}
		if got := strings.Join(told, " "); got != "ADDED MODIFIED DELETED" {
			t.Errorf("watched: %s", got)
		}
		if _, err := client.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("still served: %v", err)
		}
	})
}

func TestPut(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if err := server.Put(pod); err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().Pods("shop")
	first := must[*corev1.Pod](t)(client.Get(t.Context(), "p", metav1.GetOptions{}))
	if first.Status.Phase != corev1.PodRunning || first.ResourceVersion != server.Version() {
		t.Errorf("put: %s at %s", first.Status.Phase, first.ResourceVersion)
	}
	if pod.UID != "" || pod.Kind != "" {
		t.Error("the caller's object was changed")
	}
	if err := server.Put(pod); err != nil || first.ResourceVersion != server.Version() {
		t.Errorf("the same again: version %s, %v", server.Version(), err)
	}
	pod.Status.Phase = corev1.PodFailed
	if err := server.Put(pod); err != nil {
		t.Fatal(err)
	}
	second := must[*corev1.Pod](t)(client.Get(t.Context(), "p", metav1.GetOptions{}))
	if second.Status.Phase != corev1.PodFailed || second.UID != first.UID {
		t.Errorf("put again: %s, uid %s after %s", second.Status.Phase, second.UID, first.UID)
	}
	if err := server.Delete(pod); err != nil {
		t.Fatal(err)
	}
	if err := server.Delete(pod); !apierrors.IsNotFound(err) {
		t.Errorf("deleted twice: %v", err)
	}
	if err := server.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "a/v1", "kind": "B"}}); err == nil || !strings.Contains(err.Error(), "use Register") {
		t.Errorf("a kind that is not served: %v", err)
	}
}

func TestTokensAndTLS(t *testing.T) {
	server, err := Start(Options{TLS: true, Tokens: []string{"right"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	list := func(config *rest.Config) error {
		defer closeIdle(t, config)
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(server.Config()); err != nil {
		t.Error(err)
	}
	wrong := server.Config()
	wrong.BearerToken = "wrong"
	if err := list(wrong); !apierrors.IsUnauthorized(err) {
		t.Errorf("the wrong token: %v", err)
	}
	file := must[[]byte](t)(server.Kubeconfig())
	if err := list(must[*rest.Config](t)(clientcmd.RESTConfigFromKubeConfig(file))); err != nil {
		t.Errorf("by kubeconfig: %v", err)
	}

	old := server.Config()
	server.SetTokens("rotated")
	if err := list(old); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token that was replaced: %v", err)
	}
	if err := list(server.Config()); err != nil {
		t.Errorf("the token that replaced it: %v", err)
	}
	server.SetTokens()
	if err := list(server.Config()); !apierrors.IsUnauthorized(err) {
		t.Errorf("without any token that is let in: %v", err)
	}
}

// Tokens of a server that let everybody in shut the others out.
func TestTokensLater(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	open := server.Config()
	server.SetTokens("secret")
	for config, let := range map[*rest.Config]bool{open: false, server.Config(): true} {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if let && err != nil || !let && !apierrors.IsUnauthorized(err) {
			t.Errorf("token %q: %v", config.BearerToken, err)
		}
	}
}

func closeIdle(t *testing.T, config *rest.Config) {
	t.Helper()
	client := must[*http.Client](t)(rest.HTTPClientFor(config))
	client.CloseIdleConnections()
}

func TestStartRefuses(t *testing.T) {
	taken, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Address: "0.0.0.0:0"}, "set TLS and Tokens, or listen on 127.0.0.1"},
		{Options{Address: "0.0.0.0:0", TLS: true}, "set TLS and Tokens"},
		{Options{Address: "nonsense"}, "is not host:port"},
		{Options{Address: taken.listener.Addr().String()}, "choose another address, or port 0"},
	} {
		if server, err := Start(test.options); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %s", test.options, err, test.want)
			if server != nil {
				server.Close()
			}
		}
	}
	if _, err := New(Options{}).Kubeconfig(); err == nil || !strings.Contains(err.Error(), "make it with Start") {
		t.Errorf("the kubeconfig of a server that does not listen: %v", err)
	}
}

// A web page must not get at a server that lets everybody in.
func TestWebPagesAreKeptOut(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	for _, test := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:80", "", http.StatusOK},
		{"localhost:80", "", http.StatusOK},
		{"[::1]:80", "", http.StatusOK},
		{"rebound.example:80", "", http.StatusForbidden},
		{"127.0.0.1:80", "https://page.example", http.StatusForbidden},
	} {
		request := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
		request.Host = test.host
		if test.origin != "" {
			request.Header.Set("Origin", test.origin)
		}
		recorder := httptest.NewRecorder()
		server.guarded().ServeHTTP(recorder, request)
		if recorder.Code != test.want {
			t.Errorf("host %s, origin %q: %d, want %d", test.host, test.origin, recorder.Code, test.want)
		}
	}
}

// kubectl asks its user for a name where a kubeconfig with TLS has no credentials.
func TestKubeconfigHasCredentials(t *testing.T) {
	server, err := Start(Options{TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	config := must[*rest.Config](t)(clientcmd.RESTConfigFromKubeConfig(must[[]byte](t)(server.Kubeconfig())))
	defer closeIdle(t, config)
	if config.BearerToken == "" {
		t.Error("there is no token")
	}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
