//go:build !tarn_client_go_0_36

package kube

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// namespaces are of different shards: similar names have similar hashes.
var namespaces = []string{"default", "kube-system", "shop", "monitoring", "prod", "dev", "team-red", "a", "east", "west"}

// Shards by namespace work within a cluster, whose name is not part of the namespace.
func TestReshardInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newShardServer(t, 0)
		objects := make([]*corev1.ConfigMap, 30)
		for i := range objects {
			objects[i] = shardObject(i, "")
			objects[i].Namespace = namespaces[i%len(namespaces)]
			if err := server.Put(objects[i]); err != nil {
				t.Fatal(err)
			}
		}
		client, err := NewClient(server.config())
		if err != nil {
			t.Fatal(err)
		}
		shard := func(i, n int) ShardSet {
			set, err := ShardOf(ShardByNamespace, i, n)
			if err != nil {
				t.Fatal(err)
			}
			return set
		}
		sharding := NewSharding(shard(0, 1))
		var sections []tarn.Section[*corev1.ConfigMap]
		for _, cluster := range []string{"east", "west"} {
			inner, err := NewSource[*corev1.ConfigMap](client, Collection{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Object: reflect.TypeFor[*corev1.ConfigMap]()}, SourceOptions{Shard: sharding})
			if err != nil {
				t.Fatal(err)
			}
			source, err := InCluster[*corev1.ConfigMap](cluster, inner)
			if err != nil {
				t.Fatal(err)
			}
			sections = append(sections, tarn.Section[*corev1.ConfigMap]{Name: cluster, Source: source, Prefix: ClusterPrefix(cluster), Independent: true})
		}
		copied, err := tarn.NewReplicaOf(sections, memory.New[*corev1.ConfigMap](), tarn.Options[*corev1.ConfigMap]{Name: "configmaps"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = copied.Run(ctx)
		}()
		if err := copied.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		var silent counts
		if _, err := copied.Subscribe(silent.take, tarn.SubscribeOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		silent.since()
		for _, set := range []ShardSet{shard(0, 2), shard(0, 4), shard(1, 4), shard(0, 1), shard(3, 4), shard(0, 2)} {
			if err := sharding.Set(set); err != nil {
				t.Fatal(err)
			}
			if err := sharding.WaitTaken(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			var want, got []string
			for _, o := range objects {
				if set.Has(o.Namespace, "") {
					want = append(want, fmt.Sprintf("east/%s/%s", o.Namespace, o.Name), fmt.Sprintf("west/%s/%s", o.Namespace, o.Name))
				}
			}
			for key := range copied.All() {
				got = append(got, string(key))
			}
			if len(want) == 0 {
				t.Errorf("%s has no namespace", set)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: there are %d objects, %v, and %d belong to it: %v", set, len(got), got, len(want), want)
			}
			if seen := silent.since(); seen != "map[]" {
				t.Errorf("%s: what moved was told as news: %s", set, seen)
			}
		}
		cancel()
		<-ended
	})
}
