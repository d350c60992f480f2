//go:build !tarn_client_go_0_36

package kube_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
)

// Four processes have a quarter of the objects each. Here all are in one.
func ExampleShard() {
	api := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer api.Close()
	for i := range 100 {
		if err := api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("settings-", i)}}); err != nil {
			fmt.Println(err)
			return
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	total := 0
	for i := range 4 {
		shard, err := kube.Reflect[*corev1.ConfigMap](ctx, api.Config(), kube.Shard(i, 4))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { <-shard.Done() }()
		if err := shard.WaitSynced(ctx); err != nil {
			fmt.Println(err)
			return
		}
		total += shard.Len()
		if i == 0 {
			fmt.Println("selected by the server:", shard.Health().Shard.ByServer)
		}
	}
	cancel() // before the shards are waited for
	fmt.Println("together:", total)

	// Output:
	// selected by the server: true
	// together: 100
}
