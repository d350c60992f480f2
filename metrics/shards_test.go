package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/metrics"
)

// unshardedServer is a server that does not know shards, if on is set.
type unshardedServer struct {
	to http.RoundTripper
	on bool
}

func (f *unshardedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if q := r.URL.Query(); f.on && q.Has("shardSelector") {
		r = r.Clone(r.Context())
		q.Del("shardSelector")
		r.URL.RawQuery = q.Encode()
	}
	return f.to.RoundTrip(r)
}

// shards changes the shard of a copy, and then the server to one that knows none.
func shards(t *testing.T, compare func(before, after map[string]float64)) {
	server := newServer(t)
	for i := range 40 {
		if err := server.Put(widget(fmt.Sprint("w", i), "fine")); err != nil {
			t.Fatal(err)
		}
	}
	set := func(n int) kube.ShardSet {
		set, err := kube.ShardOf(kube.ShardByUID, 0, n)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	connection, sharding := &unshardedServer{to: server.Config().Transport}, kube.NewSharding(set(4))
	ctx, cancel := context.WithCancel(t.Context())
	replica, err := kube.ReflectResource(ctx, &rest.Config{Host: server.Config().Host, QPS: -1, Transport: connection}, widgets, kube.Sharded(sharding))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		<-replica.Done()
	}()
	c := metrics.NewCollector(metrics.Options{})
	if err := c.Add("widgets", replica); err != nil {
		t.Fatal(err)
	}
	if err := replica.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	first := gather(t, c)
	connection.on = true
	if err := sharding.Set(set(2)); err != nil {
		t.Fatal(err)
	}
	if err := sharding.WaitTaken(ctx); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	second := gather(t, c)
	compare(first, second)
	const me = "{replica=widgets}"
	if first["tarn_shard_share"+me] != 0.25 || first["tarn_shard_selected_by_server"+me] != 1 || first["tarn_shard_dropped_total"+me] != 0 {
		t.Errorf("a server that knows shards: %v", first)
	}
	if second["tarn_shard_share"+me] != 0.5 || second["tarn_shard_selected_by_server"+me] != 0 || second["tarn_shard_dropped_total"+me] == 0 {
		t.Errorf("a server that does not: %v", second)
	}
}
