//go:build !tarn_client_go_0_36

package apiserver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Shards have the objects that the library's selector says they have.
func TestShardIsThatOfTheLibrary(t *testing.T) {
	of := &storage{kind: corev1.SchemeGroupVersion.WithKind("Pod")}
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		field := []string{ShardByUID, ShardByNamespace}[random.IntN(2)]
		first := random.Uint64()
		last := first + random.Uint64N(^first)
		requirement := sharding.ShardRangeRequirement{Key: field, Start: fmt.Sprintf("0x%016x", first), End: fmt.Sprintf("0x%016x", last+1)}
		if last == ^uint64(0) || random.IntN(4) == 0 {
			last, requirement.End = ^uint64(0), "0x10000000000000000"
		}
		selector := sharding.NewSelector(requirement)
		shard, err := parseShard(selector.String())
		if err != nil || len(shard.Ranges) != 1 || shard.Ranges[0] != (HashRange{first, last}) {
			t.Fatalf("%s: %+v, %v", selector, shard, err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: fmt.Sprint("n", random.Uint64()), UID: types.UID(fmt.Sprint(random.Uint64()))}}
		want, err := selector.Matches(pod)
		if err != nil {
			t.Fatal(err)
		}
		object, err := of.freeze(pod, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := shard.has(object); got != want {
			t.Errorf("%s of %s %s: %v, want %v", selector, pod.Namespace, pod.UID, got, want)
		}
	}
}

func TestBadShards(t *testing.T) {
	for _, text := range []string{
		"x", "shardRange(object.metadata.name, '0x0', '0x1')", "shardRange(object.metadata.uid, '0x1', '0x1')", "shardRange(object.metadata.uid, '0x0', '0x20000000000000000')",
		"shardRange(object.metadata.uid, '0x0', '0x1') || shardRange(object.metadata.namespace, '0x0', '0x1')", "shardRange(object.metadata.uid, '0x0', '0x1') ||",
		"shardRange(object.metadata.uid, '0x10000000000000000', '0x10000000000000000')", strings.Repeat("shardRange(object.metadata.uid, '0x0', '0x1') || ", 300),
	} {
		if _, err := parseShard(text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// Two halves are the whole, and each list says which half it is.
func TestShardsOfAList(t *testing.T) {
	s := New(Options{AnyNamespace: true})
	defer s.Close()
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := s.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, shard := range []string{"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')", "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"} {
		list, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{ShardSelector: shard})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(list.Items); n == 0 || n == 20 {
			t.Errorf("%s has %d of 20", shard, n)
		}
		if list.ShardInfo == nil || list.ShardInfo.Selector != shard {
			t.Errorf("the list says %v", list.ShardInfo)
		}
		total += len(list.Items)
	}
	if total != 20 {
		t.Errorf("both halves have %d of 20", total)
	}
	if _, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{ShardSelector: "x"}); err == nil || !strings.Contains(err.Error(), "invalid shardSelector") {
		t.Error(err)
	}
}
