package metrics_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/metrics"
)

// A typed replica, the decoder and the pool behind it, shown to Prometheus.
func Example() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	err := server.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, err := kube.NewClient(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, err := kube.Reflect[*corev1.Node](ctx, nil, kube.WithClient(client))
	if err != nil {
		fmt.Println(err)
		return
	}
	collector := metrics.NewCollector(metrics.Options{})
	for _, err := range []error{
		collector.Add("nodes", nodes),
		collector.AddDecoding("nodes", metrics.Decoding(client.Decoded)),
		collector.AddPool("nodes", metrics.Pooling(client.Pool().Stats)),
	} {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)

	if err := nodes.WaitSynced(ctx); err != nil {
		fmt.Println(err)
		return
	}
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, family := range families {
		if name := family.GetName(); name == "tarn_objects" || name == "tarn_synced" {
			fmt.Println(name, family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	cancel()
	<-nodes.Done()
	// Output:
	// tarn_objects 1
	// tarn_synced 1
}
