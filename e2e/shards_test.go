package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/shards"
)

const shardNamespace = "sharded"

// Four shards have every object once, with the feature ShardedListAndWatch of the real
// server and without it; and members that divide the objects by Leases take over from each
// other.
func TestShards(t *testing.T) {
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprintf("ShardedListAndWatch=%v", on), func(t *testing.T) {
			cluster := Start(t, Options{Features: fmt.Sprintf("ShardedListAndWatch=%v", on)})
			cluster.Namespace(shardNamespace)
			putShardObjects(t, cluster, 200)
			for _, format := range []string{"application/vnd.kubernetes.protobuf", "application/json"} {
				for _, streams := range []bool{true, false} {
					fourShards(t, cluster, format, streams, on)
				}
			}
			divide(t, cluster)
		})
	}
}

func putShardObjects(t *testing.T, cluster *Cluster, n int) {
	t.Helper()
	for i := range n {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("o", i), Labels: map[string]string{"sharded": "yes"}}}
		if _, err := cluster.Admin().CoreV1().ConfigMaps(shardNamespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func fourShards(t *testing.T, cluster *Cluster, format string, streams, byServer bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg := cluster.shardConfig()
	cfg.ContentType, cfg.AcceptContentTypes = format, format
	seen := map[tarn.Key]int{}
	for i := range 4 {
		shard, err := kube.Reflect[*corev1.ConfigMap](ctx, cfg, kube.Shard(i, 4), kube.WatchList(streams), kube.LabelSelector("sharded=yes"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			cancel()
			<-shard.Done()
		}()
		if err := shard.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		for key := range shard.All() {
			seen[key]++
		}
		if h := shard.Health(); h.Shard == nil || h.Shard.ByServer != byServer || byServer != (h.Shard.Dropped == 0) || h.Err != nil {
			t.Errorf("%s, streams %v, shard %d: %v, %+v", format, streams, i, h, h.Shard)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%s, streams %v: the shards have %d of 200 objects", format, streams, len(seen))
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%d shards have %s", n, key)
		}
	}
}

func (c *Cluster) shardConfig() *rest.Config {
	cfg := c.Config(AdminToken)
	cfg.QPS = -1
	return cfg
}

// sharer is a member with its copy, as one process has them.
type sharer struct {
	member *shards.Member
	copied *tarn.Replica[*corev1.ConfigMap]
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func startSharer(t *testing.T, cluster *Cluster, name string) *sharer {
	t.Helper()
	s := &sharer{}
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	var err error
	s.member, err = shards.New(cluster.shardConfig(), shards.Options{Namespace: shardNamespace, Group: "workers", Identity: name, Duration: 6 * time.Second, Margin: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.copied, err = kube.Reflect[*corev1.ConfigMap](ctx, cluster.shardConfig(), kube.Sharded(s.member.Sharding()), kube.Namespace(shardNamespace), kube.LabelSelector("sharded=yes"))
	if err != nil {
		t.Fatal(err)
	}
	s.done.Go(func() { _ = s.member.Run(ctx) })
	return s
}

func (s *sharer) end() {
	s.stop()
	s.done.Wait()
	<-s.copied.Done()
}

// divide has members join and leave, and looks who owns what all the time.
func divide(t *testing.T, cluster *Cluster) {
	t.Helper()
	list, err := cluster.Admin().CoreV1().ConfigMaps(shardNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "sharded=yes"})
	if err != nil {
		t.Fatal(err)
	}
	until := func(what string, members ...*sharer) {
		t.Helper()
		began, since := time.Now(), map[string]time.Time{}
		var longest time.Duration
		for settled := false; !settled; time.Sleep(2 * time.Millisecond) {
			settled = true
			counts := make([]int, len(members))
			for i := range list.Items {
				object, owners := &list.Items[i], 0
				for j, m := range members {
					if m.member.Owns(object) {
						counts[j]++
						if owners++; owners > 1 {
							t.Errorf("%s: %s has two owners", what, object.Name)
						}
					}
				}
				from, open := since[object.Name]
				switch {
				case owners == 0 && !open:
					since[object.Name] = time.Now()
				case owners > 0 && open:
					longest = max(longest, time.Since(from))
					delete(since, object.Name)
				}
				settled = settled && owners > 0
			}
			for j, m := range members {
				settled = settled && counts[j] > 0 && counts[j] == m.copied.Len()
			}
			if time.Since(began) > time.Minute {
				for _, m := range members {
					t.Logf("%+v", m.member.Health())
				}
				t.Fatalf("%s: the members do not settle", what)
			}
		}
		t.Logf("%s: settled after %v, an object had no owner for at most %v", what, time.Since(began).Round(time.Millisecond), longest.Round(time.Millisecond))
	}
	a, b := startSharer(t, cluster, "a"), startSharer(t, cluster, "b")
	until("two members", a, b)
	c := startSharer(t, cluster, "c")
	until("a third one", a, b, c)
	left := make(chan error)
	go func() { left <- b.member.Leave(t.Context()) }()
	if err := <-left; err != nil {
		t.Error(err)
	}
	b.end()
	until("one has left", a, c)
	a.end()
	until("one has ended", c)
	c.end()
}
