package dynamicinformer_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
)

// A factory from a config, without a client, holds any resource.
func ExampleNewFactoryForConfig() {
	server := apiserver.New(apiserver.Options{AnyNamespace: true}) // any cluster will do
	defer server.Close()
	if err := server.Put(configMap("north", "depths"), configMap("south", "heights")); err != nil {
		fmt.Println(err)
		return
	}

	factory, err := dynamicinformer.NewFactoryForConfig(server.Config(), 0, "", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer factory.Shutdown()
	defer cancel()
	lister := factory.ForResource(configMaps).Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	found, err := lister.ByNamespace("north").List(labels.Everything())
	fmt.Println(len(found), err)
	// Output: 1 <nil>
}
