package relay

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// BenchmarkNodeWatchers is what a write costs with watches of the pods of one node each,
// and of one shard each. An operation is an update of a pod, until the one watch that it
// concerns has read it.
//
//	go test -run - -bench NodeWatchers ./relay
func BenchmarkNodeWatchers(b *testing.B) {
	for _, of := range []string{"nodes=10", "nodes=5000", "shards=10", "shards=5000"} {
		sort, count, _ := strings.Cut(of, "=")
		nodes, _ := strconv.Atoi(count)
		b.Run(of, func(b *testing.B) {
			resource, _ := apiserver.BuiltinResource(pods)
			s := &state{name: "pods", bytes: 64 << 20, age: time.Hour}
			commit := func(version int64, changes ...tarn.Change[Object]) {
				batch := tarn.Batch[Object]{Whole: version == 1, Changes: changes, LastContact: time.Now(), Positions: []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(version)))}}
				if err := s.Commit(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			commit(1)
			var watches []apiserver.Watch
			var wakes []chan struct{}
			for i := range nodes {
				selection := apiserver.Selection{Fields: fields.OneTermEqualSelector(nodeField, fmt.Sprint("node-", i))}
				if sort == "shards" {
					size := ^uint64(0)/uint64(nodes) + 1
					selection = apiserver.Selection{Shard: &apiserver.Shard{Field: apiserver.ShardByUID, Ranges: []apiserver.HashRange{{
						First: uint64(i) * size, Last: uint64(i)*size + size - 1,
					}}}}
					if i == nodes-1 {
						selection.Shard.Ranges[0].Last = ^uint64(0)
					}
				}
				wakes = append(wakes, make(chan struct{}, 1))
				w, err := s.Watch(b.Context(), apiserver.WatchQuery{Selection: selection, At: apiserver.At{Match: apiserver.NotOlder, Version: 1}, Wake: wakes[i]})
				if err != nil {
					b.Fatal(err)
				}
				defer w.Close()
				watches = append(watches, w)
			}
			version := int64(1)
			for b.Loop() {
				version++
				node := int(version) % nodes
				p := corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("p", node), ResourceVersion: fmt.Sprint(version), UID: types.UID(fmt.Sprint("uid-", node))},
					Spec:       corev1.PodSpec{NodeName: fmt.Sprint("node-", node), Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				}
				raw, err := p.Marshal()
				if err != nil {
					b.Fatal(err)
				}
				o, err := resource.NewObject(raw)
				if err != nil {
					b.Fatal(err)
				}
				commit(version, tarn.Change[Object]{Type: tarn.Update, Key: tarn.Key(o.Key()), Object: o, Version: text(o)})
				if sort == "shards" {
					node = int(o.ShardHash(apiserver.ShardByUID) / (^uint64(0)/uint64(nodes) + 1))
				}
				<-wakes[node]
				if events, _, err := watches[node].Next(); err != nil || len(events) == 0 {
					b.Fatalf("%d events, %v", len(events), err)
				}
			}
		})
	}
}
