package metadatainformer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/informers/metadatainformer"
)

// Who owns what can be known without holding what it is: secrets stay on the
// server.
func ExampleNewFactoryForConfig() {
	server := apiserver.New(apiserver.Options{AnyNamespace: true}) // any cluster will do
	defer server.Close()
	err := server.Put(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "north", Name: "key"},
		Data:       map[string][]byte{"password": []byte("never leaves the server")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	factory, err := metadatainformer.NewFactoryForConfig(server.Config(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer factory.Shutdown()
	defer cancel()
	lister := factory.ForResource(corev1.SchemeGroupVersion.WithResource("secrets")).Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	object, err := lister.ByNamespace("north").Get("key")
	fmt.Printf("%T %v\n", object, err)
	// Output: *v1.PartialObjectMetadata <nil>
}
