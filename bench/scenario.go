package main

import (
	"context"
	"time"

	"github.com/tarnproject/tarn/cache"
	upstream "k8s.io/client-go/tools/cache"

	"k8s.io/apimachinery/pkg/runtime"
)

// A scenario is one situation that every contender is put into.
type scenario struct {
	name string
	doc  string
	// run holds, by contender, the code that brings the situation about and
	// measures it.
	run map[string]func(context.Context, *meter) error
}

// newInformer is the constructor that contenders have in common.
type newInformer func(upstream.ListerWatcher, runtime.Object, time.Duration, upstream.Indexers) upstream.SharedIndexInformer

// contenders in the order of the table's columns; ratios are the last one's to
// the first one's.
var contenders = []struct {
	name        string
	newInformer newInformer
}{
	{"client-go", upstream.NewSharedIndexInformer},
	{"tarn unshared", newUnshared},
	{"tarn", cache.NewSharedIndexInformer},
}

// newUnshared makes an informer of package cache that does not share equal parts of
// objects. It shows what the sharing costs: events here are decoded beforehand, and
// sharing is most of what is left to do.
func newUnshared(source upstream.ListerWatcher, object runtime.Object, resync time.Duration, indexers upstream.Indexers) upstream.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(source, object, resync, indexers)
	if err := cache.ShareStructure(informer, false); err != nil {
		panic(err) // it is an informer of this package
	}
	return informer
}

// forAll makes the run map of a scenario that needs nothing of a contender but
// its informer.
func forAll(body func(context.Context, *meter, newInformer) error) map[string]func(context.Context, *meter) error {
	run := map[string]func(context.Context, *meter) error{}
	for _, c := range contenders {
		run[c.name] = func(ctx context.Context, m *meter) error { return body(ctx, m, c.newInformer) }
	}
	return run
}

var scenarios = []scenario{
	fanout(1),
	fanout(10),
	fanout(100),
	stalled(),
	relist("relist", true),
	relist("relist-paged", false),
	relistServer(),
}
