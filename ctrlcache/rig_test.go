package ctrlcache_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/ctrlcache"
)

// running is a cache of ours at work on a seeded server.
func running(t *testing.T, opts cache.Options) *stage {
	server := newAPIServer(t)
	seed(server)
	return runningOn(t, server, opts)
}

func runningOn(t *testing.T, server *apiServer, opts cache.Options) *stage {
	opts.Mapper = newMapper()
	x := runningFor(t, server.config(), opts)
	x.server = server
	return x
}

// runningFor runs a cache of ours on any server.
func runningFor(t *testing.T, cfg *rest.Config, opts cache.Options) *stage {
	c, err := ctrlcache.NewCache(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Errorf("Start: %v", err)
		}
	})
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
	return &stage{TB: t, ctx: ctx, cache: c}
}

// names reads a list and returns its objects' keys, sorted.
func (x *stage) names(list client.ObjectList, opts ...client.ListOption) []string {
	x.Helper()
	if err := x.cache.List(x.ctx, list, opts...); err != nil {
		x.Fatal(err)
	}
	return keysOf(x, list)
}
