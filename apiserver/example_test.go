package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
)

// A test of a controller starts a server of its own, sets the scene, and gives
// the controller a client.
func Example() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	err := server.Put(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	client := kubernetes.NewForConfigOrDie(server.Config())
	nodes, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range nodes.Items {
		fmt.Println(node.Name, node.Status.Conditions[0].Type)
	}
	// Output: node-1 Ready
}

// The server is an http.Handler like any other.
func ExampleNew() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	front := httptest.NewServer(server)
	defer front.Close()

	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: front.URL})
	version, err := client.Discovery().ServerVersion()
	fmt.Println(version.Major, err)
	// Output: 1 <nil>
}

// On a port, other programs can reach it: write the kubeconfig to a file and
// point kubectl at it.
func ExampleStart() {
	server, err := apiserver.Start(apiserver.Options{TLS: true, Tokens: []string{"let-me-in"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	kubeconfig, err := server.Kubeconfig()
	fmt.Println(len(kubeconfig) > 0, err)
	// Output: true <nil>
}

func ExampleServer_Register() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	if err := server.Register(apiserver.Kind{Group: "example.org", Version: "v1", Kind: "Widget"}); err != nil {
		fmt.Println(err)
		return
	}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w"},
		"spec":     map[string]any{"size": int64(3)},
	}}
	widgets := dynamic.NewForConfigOrDie(server.Config()).Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"})
	created, err := widgets.Namespace("default").Create(context.Background(), widget, metav1.CreateOptions{})
	fmt.Println(created.GetName(), created.GetGeneration(), err)
	// Output: w 1 <nil>
}

// A client that was disconnected for too long must start over.
func ExampleServer_Compact() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	before := server.Version()
	if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
		fmt.Println(err)
		return
	}
	server.Compact()

	client := kubernetes.NewForConfigOrDie(server.Config())
	stream, err := client.CoreV1().ConfigMaps("default").Watch(context.Background(), metav1.ListOptions{ResourceVersion: before})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Stop()
	event := <-stream.ResultChan()
	fmt.Println(event.Type, event.Object.(*metav1.Status).Reason)
	// Output: ERROR Expired
}

// The server is restored from a backup: what was written since has never been,
// and versions that were seen come again.
func ExampleServer_Restore() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	backup := server.Snapshot()
	if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
		fmt.Println(err)
		return
	}
	seen := server.Version()
	if err := server.Restore(backup); err != nil {
		fmt.Println(err)
		return
	}
	if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.Version() == seen)

	configs, err := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default").List(context.Background(), metav1.ListOptions{})
	fmt.Println(len(configs.Items), configs.Items[0].Name, err)
	// Output:
	// true
	// 1 b <nil>
}

// A token that has been replaced is refused from the next request on.
func ExampleServer_SetTokens() {
	server := apiserver.New(apiserver.Options{Tokens: []string{"first"}})
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(server.Config())
	server.SetTokens("second")
	_, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	fmt.Println(err)
	// Output: Unauthorized
}

// There is no RBAC. Test a controller without permissions with a handler in
// between.
func ExampleServer_ServeHTTP() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			http.Error(w, "not for you", http.StatusForbidden)
			return
		}
		server.ServeHTTP(w, r)
	}))
	defer front.Close()

	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: front.URL})
	_, err := client.CoreV1().Secrets("default").List(context.Background(), metav1.ListOptions{})
	fmt.Println(apierrors.IsForbidden(err))
	_, err = client.CoreV1().ConfigMaps("default").List(context.Background(), metav1.ListOptions{})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}
