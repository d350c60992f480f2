package verify_test

import (
	"context"
	"fmt"
	"log"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/verify"
)

type object = *unstructured.Unstructured

// A copy of the nodes is proven equal; then a program writes to it, which no
// version shows.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	_ = server.Put(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n1"}})

	client, err := kube.NewClient(server.Config())
	if err != nil {
		log.Fatal(err)
	}
	source, err := kube.NewSource[object](client, kube.Collection{
		Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Object: reflect.TypeFor[object](),
	}, kube.SourceOptions{})
	if err != nil {
		log.Fatal(err)
	}
	store := memory.New[object]()
	nodes, err := tarn.NewReplica(source, store, tarn.Options[object]{})
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = nodes.Run(ctx) }()
	defer func() { cancel(); <-nodes.Done() }()

	target := verify.Target[object]{Name: "nodes", Replica: nodes, Store: store, Sources: []tarn.Source[object]{source}}
	result, err := verify.Once(ctx, target, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Verdict, result.Objects)

	n1, _ := nodes.Get("n1")
	n1.SetLabels(map[string]string{"zone": "here"}) // objects of a replica are read-only
	result, err = verify.Once(ctx, target, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Verdict, result.Differences[0].Key, result.Differences[0].Fields)
	// Output:
	// equal 1
	// different n1 [metadata.labels]
}
