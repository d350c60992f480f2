package relay

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/apiserver"
)

// shardOf is the i-th of n equal parts.
func shardOf(i, n uint64) string {
	bound := func(i uint64) string {
		if i == n {
			return "0x10000000000000000"
		}
		return fmt.Sprintf("0x%x", i*(^uint64(0)/n+1))
	}
	return fmt.Sprintf("shardRange(object.metadata.uid, '%s', '%s')", bound(i), bound(i+1))
}

// Shards are served from the copy, whatever the origin knows of them.
func TestShards(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 30 {
		r.put(pod(fmt.Sprint("p", i), "x"))
	}
	r.settle()
	r.requests()
	client := r.client()
	total, half := 0, shardOf(0, 2)
	for i := range uint64(2) {
		list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ShardSelector: shardOf(i, 2)})
		if err != nil || list.ShardInfo == nil || list.ShardInfo.Selector != shardOf(i, 2) {
			t.Fatalf("%v, %v", list.ShardInfo, err)
		}
		total += len(list.Items)
	}
	if total != 31 {
		t.Errorf("both halves have %d of 31 pods", total)
	}
	for _, request := range r.requests() {
		if strings.Contains(request, "shardSelector") {
			t.Errorf("the origin was asked: %s", request)
		}
	}
	watching, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ShardSelector: half, ResourceVersion: r.origin.Version()})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for i := range 30 {
		r.put(pod(fmt.Sprint("p", i), "y"))
	}
	_, body := r.read("/api/v1/pods?shardSelector=" + url.QueryEscape(half))
	for n := strings.Count(body, `"name":"p`) - strings.Count(body, `"name":"settle`); n > 0; n-- {
		e := <-watching.ResultChan()
		if name := e.Object.(metav1.Object).GetName(); e.Type != watch.Modified || !strings.Contains(body, fmt.Sprintf(`"name":%q`, name)) {
			t.Errorf("%s %s is in no list of the shard", e.Type, name)
		}
	}
}

// The topics of a shard have its hashes, and hardly any others.
func TestShardTopics(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		first := random.Uint64()
		r := apiserver.HashRange{First: first, Last: first + random.Uint64N(^first)>>random.IntN(40)}
		topics := shardTopics(&apiserver.Shard{Field: apiserver.ShardByUID, Ranges: []apiserver.HashRange{r}})
		if len(topics) > 2*shardBits {
			t.Fatalf("%d topics", len(topics))
		}
		covered := func(hash uint64) bool {
			for _, topic := range topics {
				if hash&^(^uint64(0)>>topic.hashes.bits) == topic.hashes.begin {
					return true
				}
			}
			return false
		}
		for range 20 {
			if hash := r.First + random.Uint64N(r.Last-r.First+1); !covered(hash) {
				t.Fatalf("%x of %+v is in no topic of %+v", hash, r, topics)
			}
		}
		const width = 1 << (64 - shardBits)
		if r.First >= width && covered(r.First-width) || r.Last < ^uint64(0)-width && covered(r.Last+width) {
			t.Fatalf("%+v is covered by %+v", r, topics)
		}
	}
	if topics := shardTopics(&apiserver.Shard{Ranges: []apiserver.HashRange{{First: 0, Last: ^uint64(0) >> 2}}}); len(topics) != 1 {
		t.Errorf("a quarter is %+v", topics)
	}
	if topics := shardTopics(&apiserver.Shard{Ranges: []apiserver.HashRange{{First: 0, Last: ^uint64(0)}}}); len(topics) != 1 {
		t.Errorf("everything is %+v", topics)
	}
}

// An event wakes the watches of its shard only.
func TestShardWakes(t *testing.T) {
	r := newRig(t, Options{})
	r.settle()
	s := r.copy(pods, "").state
	woken := 0
	var wakes []chan struct{}
	for i := range uint64(64) {
		first := i << 58
		wakes = append(wakes, make(chan struct{}, 1))
		w, err := s.Watch(t.Context(), apiserver.WatchQuery{
			Selection: apiserver.Selection{Shard: &apiserver.Shard{Field: apiserver.ShardByUID, Ranges: []apiserver.HashRange{{First: first, Last: first + 1<<58 - 1}}}},
			At:        apiserver.At{Match: apiserver.NotOlder, Version: s.stats().version},
			Wake:      wakes[i],
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
	}
	r.put(pod("one", "x"))
	s.await(t.Context(), versionOf(tarnVersion(r.origin.Version())), 10*time.Second)
	for _, wake := range wakes {
		select {
		case <-wake:
			woken++
		default:
		}
	}
	if woken != 1 {
		t.Errorf("%d of 64 watches were woken", woken)
	}
}
