package jetstream_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/jetstream"
	"github.com/tarnproject/tarn/jetstream/embedded"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
)

// The ConfigMaps of a cluster in a bucket, which any NATS client reads.
func ExampleNew() {
	withServers(func(ctx context.Context, cluster *apiserver.Server, js natsjs.JetStream) {
		check(cluster.Put(configMap("frontend", "info")))
		replica, err := kube.Reflect[*corev1.ConfigMap](ctx, cluster.Config(), kube.Sink(func(of kube.Origin) (tarn.Sink[*corev1.ConfigMap], error) {
			bucket := jetstream.Bucket{Name: "configmaps", History: 5, Of: of.Selection(), Source: of.Identity}
			return jetstream.New(js, bucket, jetstream.Objects[*corev1.ConfigMap]())
		}))
		check(err)
		check(replica.WaitSynced(ctx))
		check(cluster.Put(configMap("frontend", "debug")))

		bucket, err := js.KeyValue(ctx, "configmaps")
		check(err)
		watcher, err := bucket.Watch(ctx, "default.*", natsjs.IncludeHistory()) // a namespace
		check(err)
		defer func() { check(watcher.Stop()) }()
		for entry := range watcher.Updates() {
			if entry == nil { // what was there when the watch began ends here
				continue
			}
			object, err := jetstream.Objects[*corev1.ConfigMap]().Decode(entry.Value())
			check(err)
			fmt.Println(entry.Key(), object.Data["level"])
			if object.Data["level"] == "debug" {
				break
			}
		}
	})
	// Output:
	// default.frontend info
	// default.frontend debug
}

// A copy of a copy: one process follows the cluster, others follow the bucket.
func ExampleNewSource() {
	withServers(func(ctx context.Context, cluster *apiserver.Server, js natsjs.JetStream) {
		check(cluster.Put(configMap("frontend", "info")))
		bucket := jetstream.Bucket{Name: "configmaps"}
		first, err := kube.Reflect[*corev1.ConfigMap](ctx, cluster.Config(), kube.Sink(func(kube.Origin) (tarn.Sink[*corev1.ConfigMap], error) {
			return jetstream.New(js, bucket, jetstream.Objects[*corev1.ConfigMap]())
		}))
		check(err)
		check(first.WaitSynced(ctx))

		source, err := jetstream.NewSource(js, bucket, jetstream.Objects[*corev1.ConfigMap]())
		check(err)
		second, err := tarn.NewReplica(source, memory.New[*corev1.ConfigMap](), tarn.Options[*corev1.ConfigMap]{Name: "configmaps over NATS"})
		check(err)
		running, cancel := context.WithCancel(ctx)
		defer func() { cancel(); <-second.Done() }()
		go func() { _ = second.Run(running) }()
		check(second.WaitSynced(ctx))
		object, _ := second.Get("default/frontend")
		fmt.Println(object.Name, object.Data["level"], second.Version() == tarn.Version(cluster.Version()))
	})
	// Output: frontend info true
}

func configMap(name, level string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"level": level}}
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// withServers runs a cluster and a NATS server meanwhile, and ends ctx before them.
func withServers(do func(ctx context.Context, cluster *apiserver.Server, js natsjs.JetStream)) {
	cluster, err := apiserver.Start(apiserver.Options{})
	check(err)
	defer cluster.Close()
	dir, err := os.MkdirTemp("", "nats")
	check(err)
	defer os.RemoveAll(dir)
	server, err := embedded.Start(embedded.Options{Dir: dir})
	check(err)
	defer server.Stop()
	nc, err := nats.Connect("", server.Option(), nats.MaxReconnects(-1))
	check(err)
	defer nc.Close()
	js, err := natsjs.New(nc)
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	do(ctx, cluster, js)
}
