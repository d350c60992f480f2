//go:build !tarn_client_go_0_36

package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
)

// A copy whose shard becomes a part of what it has lists nothing. It does if the answer to a
// list is needed to know whether the server selects, or if what it holds is not what came.
func TestNarrowerShard(t *testing.T) {
	for name, c := range map[string]struct {
		first int // the copy begins with shard 0 of so many
		opts  []Option
		lists int64
	}{
		"of a part":           {first: 2},
		"of all":              {first: 1, lists: 1},
		"without the uids":    {first: 2, opts: []Option{DropFields("metadata.uid")}, lists: 1},
		"without some fields": {first: 2, opts: []Option{DropFields("data")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testNarrower(t, c.first, c.lists, c.opts) })
		})
	}
}

func testNarrower(t *testing.T, first int, lists int64, opts []Option) {
	server := newShardServer(t, 100)
	var asked []string
	server.treat = func(r *http.Request) *http.Response {
		asked = append(asked, r.URL.Query().Get("resourceVersion"))
		return nil
	}
	sharding := NewSharding(shardOf(t, 0, first))
	ctx, cancel := context.WithCancel(t.Context())
	all, err := Reflect[*corev1.ConfigMap](ctx, server.Config())
	if err != nil {
		t.Fatal(err)
	}
	copied, err := Reflect[*corev1.ConfigMap](ctx, server.config(), append(opts, Sharded(sharding))...)
	if err != nil {
		t.Fatal(err)
	}
	if err := copied.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	version := string(copied.Version())
	asked = nil
	if err := sharding.Set(shardOf(t, 0, 4)); err != nil {
		t.Fatal(err)
	}
	if err := sharding.WaitTaken(ctx); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if got := copied.Health().Lists["shard"]; got != lists {
		t.Errorf("%d lists, want %d", got, lists)
	}
	if lists == 0 && (len(asked) != 1 || asked[0] != version) {
		t.Errorf("it asked from %q, want one watch from %s", asked, version)
	}
	server.put(t, 3, "second")
	synctest.Wait()
	wantShard(t, all, copied, shardOf(t, 0, 4))
	cancel()
	<-copied.Done()
	<-all.Done()
}

// wantShard compares a copy of a shard with one of all objects.
func wantShard(t *testing.T, all, copied *tarn.Replica[*corev1.ConfigMap], set ShardSet) {
	t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for key, object := range all.All() {
		if set.Has(object.Namespace, string(object.UID)) {
			want[string(key)] = object.ResourceVersion
		}
	}
	for key, object := range copied.All() {
		got[string(key)] = object.ResourceVersion
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("%s: the copy has\n%v\nwant\n%v", set, got, want)
	}
}

// Whatever sets follow each other while objects change, the copy has those of the last one.
func TestReshardModel(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			server := newShardServer(t, 60)
			if seed%2 == 1 {
				server.treat = ignoresSelector
			}
			slots := func() (set ShardSet) {
				set, _ = NewShardSet(ShardByUID)
				for i := range 6 {
					if r.IntN(2) == 0 {
						set = set.Union(shardOf(t, i, 6))
					}
				}
				return set
			}
			set := slots()
			sharding := NewSharding(set)
			ctx, cancel := context.WithCancel(t.Context())
			all, err := Reflect[*corev1.ConfigMap](ctx, server.Config())
			if err != nil {
				t.Fatal(err)
			}
			copied, err := Reflect[*corev1.ConfigMap](ctx, server.config(), Sharded(sharding))
			if err != nil {
				t.Fatal(err)
			}
			narrower := 0
			for step := range 30 {
				before := set
				if r.IntN(3) > 0 {
					set = slots()
				} else if len(set.ranges) > 1 { // give one range up
					set, _ = NewShardSet(ShardByUID, set.ranges[1:]...)
				}
				if !before.All() && before.Contains(set) && !before.Equal(set) {
					narrower++
				}
				if err := sharding.Set(set); err != nil {
					t.Fatal(err)
				}
				for range r.IntN(5) {
					i := r.IntN(80)
					if r.IntN(3) == 0 {
						_ = server.Delete(shardObject(i, "")) // it may not be there
					} else {
						server.put(t, i, fmt.Sprint(step))
					}
				}
				if r.IntN(4) > 0 {
					if err := sharding.WaitTaken(ctx); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					wantShard(t, all, copied, set)
				}
			}
			if h := copied.Health(); narrower == 0 || h.Lists["shard"] > int64(30-narrower) || strings.Contains(h.String(), "bad") {
				t.Errorf("%d of 30 changes only lose objects: %v, %v", narrower, h.Lists, h)
			}
			cancel()
			<-copied.Done()
		})
	}
}
