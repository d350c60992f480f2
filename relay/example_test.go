package relay_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/relay"
)

// A relay of pods in front of a server. Clients reach everything through it, and pods
// from its copy.
func Example() {
	origin, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		panic(err)
	}
	defer origin.Close()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if err := origin.Put(pod); err != nil {
		panic(err)
	}

	r, err := relay.New(relay.Options{
		Config:    origin.Config(),
		Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "pods"}},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if err := r.WaitSynced(ctx); err != nil {
		panic(err)
	}
	server := httptest.NewServer(r)
	defer server.Close()

	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, BearerToken: "of a caller"})
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		panic(err)
	}
	fmt.Println(pods.Items[0].Name, "from the copy:", r.Stats()[0].Served)
	// Output: web from the copy: 1
}
