package shards_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/shards"
)

// A process joins a group, and works on the objects that are its own: here on all, because
// it is alone.
func Example() {
	api := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer api.Close()
	if err := api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "settings"}}); err != nil {
		fmt.Println(err)
		return
	}
	gained := make(chan kube.ShardSet, 1)
	member, err := shards.New(api.Config(), shards.Options{
		Namespace: "prod", Group: "billing",
		OnGain: func(set kube.ShardSet) { gained <- set },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	copied, err := kube.Reflect[*corev1.ConfigMap](ctx, api.Config(), kube.Sharded(member.Sharding()))
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- member.Run(ctx) }()
	defer func() { <-ended; <-copied.Done() }()
	defer cancel()

	set := <-gained // time to work on these objects
	for key, object := range copied.All() {
		if !set.Has(object.Namespace, string(object.UID)) {
			continue
		}
		done, ok := member.Begin(object)
		if !ok {
			continue // another process has it by now
		}
		fmt.Println("work on", key)
		done()
	}

	// Output: work on prod/settings
}
