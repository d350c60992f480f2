package web_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/web"
)

// A page over a mirror of all nodes.
func Example() {
	cluster := apiserver.New(apiserver.Options{})
	defer cluster.Close()
	if err := cluster.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"zone": "a"}}}); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	catalog, err := mirror.Discover(ctx, cluster.Config())
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := catalog.Find("nodes")
	if err != nil {
		log.Fatal(err)
	}
	m, err := mirror.Start(ctx, cluster.Config(), []mirror.Resource{nodes}, mirror.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := m.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}

	// Without a token one is made, and server.SignInURL() is the link that signs in.
	const token = "a secret of sixteen or more characters"
	server, err := web.Listen(m, web.Options{Name: "example", Address: "127.0.0.1:0", Token: token})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+"api/tables/nodes?q=zone=a", nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(answer.Status, len(body) > 0)

	cancel()
	fmt.Println(<-done)
	<-m.Done()
	// Output:
	// 200 OK true
	// <nil>
}
