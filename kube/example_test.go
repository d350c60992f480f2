package kube_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

// newServer replaces a cluster. It has two pods, which never change.
func newServer() *httptest.Server {
	const (
		web   = `{"metadata":{"name":"web","namespace":"shop","resourceVersion":"7"},"spec":{"nodeName":"node-1"}}`
		db    = `{"metadata":{"name":"db","namespace":"shop","resourceVersion":"8"},"spec":{"nodeName":"node-2"}}`
		end   = `{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`
		event = `{"type":"%s","object":%s}` + "\n"
	)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case r.URL.Path == "/api/v1":
			fmt.Fprint(w, `{"resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`)
		case query.Get("watch") == "":
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[%s,%s]}`, db, web)
		case query.Get("sendInitialEvents") == "true":
			fmt.Fprintf(w, event+event+event, "ADDED", web, "ADDED", db, "BOOKMARK", end)
			fallthrough
		default:
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
}

// A live copy of all pods: the type says which.
func ExampleReflect() {
	server := newServer()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())

	cfg := &rest.Config{Host: server.URL} // from rest.InClusterConfig, say
	pods, err := kube.Reflect[*corev1.Pod](ctx, cfg, kube.DropManagedFields())
	if err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitSynced(ctx); err != nil {
		log.Fatal(err) // says why: forbidden, unreachable, no such kind …
	}
	if web, ok := pods.Get("shop/web"); ok {
		fmt.Println(web.Name, "runs on", web.Spec.NodeName)
	}
	fmt.Println(pods.Len(), "pods at version", pods.Version())

	stop()
	<-pods.Done()
	// Output:
	// web runs on node-1
	// 2 pods at version 9
}

// Custom resources need no Go type.
func ExampleReflectResource() {
	server := newServer()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())

	resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	objects, err := kube.ReflectResource(ctx, &rest.Config{Host: server.URL}, resource,
		kube.Namespace("shop"), kube.WatchList(false))
	if err != nil {
		log.Fatal(err)
	}
	if err := objects.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	db, _ := objects.Get("shop/db")
	fmt.Println(db.GetKind(), db.GetName(), db.GetResourceVersion())

	stop()
	<-objects.Done()
	// Output:
	// Pod db 8
}

// A copy with the connections and credentials of a clientset that the program has.
func ExampleClientOf() {
	server := newServer()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())

	clientset := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
	client, err := kube.ClientOf(clientset.CoreV1().RESTClient().(*rest.RESTClient))
	if err != nil {
		log.Fatal(err)
	}
	pods, err := kube.Reflect[*corev1.Pod](ctx, nil, kube.WithClient(client))
	if err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(pods.Len(), "pods")

	stop()
	<-pods.Done()
	// Output:
	// 2 pods
}

// A source alone, for a reflector and a store of your own.
func ExampleNewSource() {
	server := newServer()
	defer server.Close()
	client, err := kube.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	source, err := kube.NewSource[*corev1.Pod](client, kube.Collection{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Kind:     corev1.SchemeGroupVersion.WithKind("Pod"),
		Object:   reflect.TypeFor[*corev1.Pod](),
	}, kube.SourceOptions{})
	if err != nil {
		log.Fatal(err)
	}
	page, err := source.List(context.Background(), tarn.ListQuery{AtLeast: tarn.Any})
	if err != nil {
		log.Fatal(err)
	}
	for _, pod := range page.Items {
		fmt.Println(pod.Namespace, pod.Name)
	}
	// Output:
	// shop db
	// shop web
}

// Two relays and the server: when one goes away, the copy continues at the next.
func ExampleEndpoints() {
	relay, server := newServer(), newServer()
	defer server.Close()
	relay.Close() // it is unreachable

	cfg, err := kube.Endpoints(&rest.Config{Host: relay.URL}, &rest.Config{Host: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	pods, err := kube.Reflect[*corev1.Pod](ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(pods.Len(), "pods")
	for i, endpoint := range kube.HealthOfEndpoints(cfg) {
		fmt.Printf("endpoint %d: works %t\n", i, endpoint.Failures == 0)
	}

	stop()
	<-pods.Done()
	// Output:
	// 2 pods
	// endpoint 0: works false
	// endpoint 1: works true
}
