//go:build !tarn_client_go_0_36

package kube

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

// A set has the objects that the selector of Kubernetes' own library has.
func TestShardSetIsThatOfTheLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		key := []ShardKey{ShardByUID, ShardByNamespace}[random.IntN(2)]
		n := 1 + random.IntN(9)
		set, err := ShardOf(key, random.IntN(n), n)
		if err != nil {
			t.Fatal(err)
		}
		r := set.Ranges()[0]
		end := fmt.Sprintf("0x%016x", r.Last+1)
		if r.Last == ^uint64(0) {
			end = "0x10000000000000000"
		}
		selector := sharding.NewSelector(sharding.ShardRangeRequirement{Key: string(key), Start: fmt.Sprintf("0x%016x", r.First), End: end})
		if n > 1 && set.Selector() != selector.String() {
			t.Errorf("the selector is %s, and the library's %s", set.Selector(), selector)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", random.Uint64()), UID: types.UID(fmt.Sprint(random.Uint64()))}}
		want, err := selector.Matches(pod)
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Has(pod.Namespace, string(pod.UID)); got != want {
			t.Errorf("%s: %s %s: %v, want %v", selector, pod.Namespace, pod.UID, got, want)
		}
	}
}
