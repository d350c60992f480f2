//go:build !tarn_client_go_0_36

package kube

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
)

// counts counts the changes that a subscriber sees.
type counts struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *counts) take(change tarn.Change[*corev1.ConfigMap]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := map[tarn.ChangeType]string{tarn.Add: "add", tarn.Update: "update", tarn.Delete: "delete", tarn.Sync: "sync"}[change.Type]
	if change.Moved {
		name += " moved"
	}
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[name]++
}

func (c *counts) since() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer clear(c.seen)
	return fmt.Sprint(c.seen)
}

func shardOf(t *testing.T, i, n int) ShardSet {
	t.Helper()
	set, err := ShardOf(ShardByUID, i, n)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A copy that changes its shard has the objects of the new one. A subscriber that asks is
// notified of those that came and went; another one is notified of real changes only.
func TestReshard(t *testing.T) {
	for _, treat := range []func(*http.Request) *http.Response{nil, ignoresSelector} {
		for _, streams := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) { testReshard(t, treat, streams) })
		}
	}
}

func testReshard(t *testing.T, treat func(*http.Request) *http.Response, streams bool) {
	server := newShardServer(t, 200)
	server.treat = treat
	sharding := NewSharding(shardOf(t, 0, 4))
	ctx, cancel := context.WithCancel(t.Context())
	copied, err := Reflect[*corev1.ConfigMap](ctx, server.config(), Sharded(sharding), WatchList(streams))
	if err != nil {
		t.Fatal(err)
	}
	var asks, silent counts
	if _, err := copied.Subscribe(asks.take, tarn.SubscribeOptions{Moved: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := copied.Subscribe(silent.take, tarn.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := copied.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	in := func(set ShardSet) (n int) {
		for _, object := range copied.All() {
			if set.Has(object.Namespace, string(object.UID)) {
				n++
			}
		}
		return n
	}
	before := copied.Len()
	if first := fmt.Sprint(map[string]int{"add": before}); asks.since() != first || silent.since() != first {
		t.Error("the first state is not as expected")
	}

	change := func(set ShardSet) {
		t.Helper()
		if err := sharding.Set(set); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := sharding.WaitTaken(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the change of the shard took %v", took)
		}
		synctest.Wait()
		if n := in(set); n != copied.Len() || n == 0 {
			t.Errorf("%d of %d objects belong to %s", n, copied.Len(), set)
		}
	}
	half := shardOf(t, 0, 2)
	change(half)
	wide := copied.Len()
	if got, want := asks.since(), fmt.Sprint(map[string]int{"add moved": wide - before}); got != want {
		t.Errorf("wider: %s, want %s", got, want)
	}
	if got := silent.since(); got != "map[]" {
		t.Errorf("wider: one that did not ask saw %s", got)
	}

	// Objects that came are updated and deleted as any other.
	var own []int
	for i := range 200 {
		if _, ok := copied.Get(tarn.Key(fmt.Sprintf("n%d/c%d", i%10, i))); ok {
			own = append(own, i)
		}
	}
	for _, i := range own {
		server.put(t, i, "second")
	}
	synctest.Wait()
	want := fmt.Sprint(map[string]int{"update": len(own)})
	if got, other := asks.since(), silent.since(); got != want || other != want {
		t.Errorf("updates: %s and %s, want %s", got, other, want)
	}

	change(shardOf(t, 1, 4))
	if got, want := asks.since(), fmt.Sprint(map[string]int{"delete moved": wide - copied.Len()}); got != want {
		t.Errorf("narrower: %s, want %s", got, want)
	}
	if got := silent.since(); got != "map[]" {
		t.Errorf("narrower: one that did not ask saw %s", got)
	}
	if lists := copied.Health().Lists["shard"]; lists != 1 {
		t.Errorf("the state was read %d times for a wider and a narrower shard", lists)
	}
	if h := copied.Health(); !strings.Contains(h.String(), "25.0 %") || h.Err != nil {
		t.Error(h)
	}
	cancel()
	<-copied.Done()
	if err := sharding.WaitTaken(t.Context()); err != nil {
		t.Error("a copy that has ended is waited for:", err)
	}
}

// An object that is created or deleted while the shard changes is news for everyone.
func TestReshardWithRealChanges(t *testing.T) {
	half, quarter := shardOf(t, 0, 2), shardOf(t, 0, 4)
	for _, change := range [][2]ShardSet{{half, quarter}, {quarter, half}} {
		testReshardWithRealChanges(t, change[0], change[1])
	}
}

func testReshardWithRealChanges(t *testing.T, first, second ShardSet) {
	synctest.Test(t, func(t *testing.T) {
		server := newShardServer(t, 100)
		sharding := NewSharding(first)
		ctx, cancel := context.WithCancel(t.Context())
		var copied *tarn.Replica[*corev1.ConfigMap]
		var during func()
		server.treat = func(*http.Request) *http.Response {
			if during != nil {
				during()
			}
			return nil
		}
		copied, err := Reflect[*corev1.ConfigMap](ctx, server.config(), Sharded(sharding))
		if err != nil {
			t.Fatal(err)
		}
		var silent counts
		if _, err := copied.Subscribe(silent.take, tarn.SubscribeOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := copied.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		silent.since()
		deleted := 0
		during = func() {
			during = nil
			for i := range 60 { // so many that some of them belong to the shard, before and after
				if object, ok := copied.Get(tarn.Key(fmt.Sprintf("n%d/c%d", i%10, i))); ok {
					if second.Has("", string(object.UID)) {
						deleted++
					}
					if err := server.Delete(object); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if err := sharding.Set(second); err != nil {
			t.Fatal(err)
		}
		if err := sharding.WaitTaken(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := silent.since(), fmt.Sprint(map[string]int{"delete": deleted}); got != want || deleted == 0 {
			t.Errorf("saw %s, want %s", got, want)
		}
		cancel()
		<-copied.Done()
	})
}
