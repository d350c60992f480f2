//go:build !tarn_client_go_0_36

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
)

// A transform may drop the uid, by which shards are divided. Objects that are deleted while
// the copy does not follow are deleted for its subscribers, whichever shard it has.
func TestTransformWithoutUID(t *testing.T) {
	for i := range 4 {
		for _, streams := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				server := newShardServer(t, 60)
				ctx, cancel := context.WithCancel(t.Context())
				copied, err := Reflect[*corev1.ConfigMap](ctx, server.config(), Shard(i, 4), WatchList(streams), Transform(withoutUID))
				if err != nil {
					t.Fatal(err)
				}
				var seen counts
				if _, err := copied.Subscribe(seen.take, tarn.SubscribeOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := copied.WaitSynced(ctx); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				seen.since()
				server.treat = func(*http.Request) *http.Response {
					server.treat = nil
					for _, object := range copied.All() {
						if err := server.Drop(object); err != nil {
							t.Error(err)
						}
						break
					}
					return nil
				}
				copied.Recheck("a test")
				time.Sleep(time.Minute)
				synctest.Wait()
				if got, want := seen.since(), fmt.Sprint(map[string]int{"delete": 1}); got != want {
					t.Errorf("shard %d, streams %v: saw %s, want %s", i, streams, got, want)
				}
				cancel()
				<-copied.Done()
			})
		}
	}
}

// The same while the shard changes: an object that is gone is deleted, and those that moved
// are not.
func TestReshardWithoutUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newShardServer(t, 100)
		quarters := func(i, j int) ShardSet { return shardOf(t, i, 4).Union(shardOf(t, j, 4)) }
		sharding := NewSharding(quarters(0, 1))
		ctx, cancel := context.WithCancel(t.Context())
		both, err := Reflect[*corev1.ConfigMap](ctx, server.config(), Sharded(NewSharding(shardOf(t, 1, 4))))
		if err != nil {
			t.Fatal(err)
		}
		copied, err := Reflect[*corev1.ConfigMap](ctx, server.config(), Sharded(sharding), Transform(withoutUID))
		if err != nil {
			t.Fatal(err)
		}
		var asks, silent counts
		for c, moved := range map[*counts]bool{&asks: true, &silent: false} {
			if _, err := copied.Subscribe(c.take, tarn.SubscribeOptions{Moved: moved}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(both.WaitSynced(ctx), copied.WaitSynced(ctx)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		silent.since()
		asks.since()
		before, kept := copied.Len(), both.Len()
		server.treat = func(*http.Request) *http.Response {
			server.treat = nil
			for _, object := range both.All() {
				if err := server.Drop(object); err != nil {
					t.Error(err)
				}
				break
			}
			return nil
		}
		if err := sharding.Set(quarters(1, 2)); err != nil {
			t.Fatal(err)
		}
		if err := sharding.WaitTaken(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := map[string]int{"add moved": copied.Len() - kept + 1, "delete": 1, "delete moved": before - kept}
		if got := asks.since(); got != fmt.Sprint(want) {
			t.Errorf("saw %s, want %v", got, want)
		}
		if got := silent.since(); got != "map[delete:1]" {
			t.Errorf("one that did not ask saw %s", got)
		}
		cancel()
		<-copied.Done()
		<-both.Done()
	})
}

func withoutUID(m *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	m.UID = ""
	return m, nil
}
