package relay

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
)

// copied is one resource that the relay serves from a copy.
type copied struct {
	resource schema.GroupVersionResource
	of       *apiserver.Resource
	source   *kube.Source[Object]
	replica  *tarn.Replica[Object]
	state    *state
	reader   *apiserver.Reader

	// version asks the origin for its newest version, quiet for a proof that nothing has
	// happened to the resource.
	version, quiet prober

	probes, quietWatches     atomic.Int64
	sentBytes, receivedBytes atomic.Int64
	served, forwarded        tally
}

func (r *Relay) newCopied(client *kube.Client, resource schema.GroupVersionResource) (*copied, error) {
	of, ok := apiserver.BuiltinResource(resource)
	if !ok {
		return nil, fmt.Errorf("relay: %s is no built-in resource; others can be reached through the relay, but not be served from a copy", resource)
	}
	c := &copied{resource: resource, of: of}
	var err error
	c.source, err = kube.NewEncodedSource(client, kube.Collection{Resource: resource, Kind: of.Kind()}, kube.Encoding[Object]{
		Protobuf: true,
		Decode:   of.NewObject,
		Describe: describe,
	}, kube.SourceOptions{})
	if err != nil {
		return nil, err
	}
	name := resource.GroupResource().String()
	c.state = &state{name: name, bytes: r.options.LogBytes, age: r.options.LogAge, patience: versionPatience, latest: c.latest}
	c.replica, err = tarn.NewReplica(c.source, memory.New[Object](), tarn.Options[Object]{
		Name: name, WatchList: true, Logger: r.options.Logger,
		Equal: func(a, b Object) bool { return string(a.Bytes()) == string(b.Bytes()) },
		Sinks: []tarn.Sink[Object]{c.state},
	})
	if err != nil {
		return nil, err
	}
	c.reader = apiserver.NewReader(of, c.state, apiserver.ReaderOptions{WriteTimeout: r.options.WriteTimeout})
	c.version = prober{ask: c.askVersion, start: r.start}
	c.quiet = prober{ask: c.askQuiet, start: r.start}
	return c, nil
}

func describe(o Object) (tarn.Meta, error) {
	return tarn.Meta{Key: tarn.Key(o.Key()), Version: tarn.Version(fmt.Sprint(o.Version())), UID: o.UID()}, nil
}

// run keeps the copy up to date until ctx ends.
func (c *copied) run(ctx context.Context) { _ = c.replica.Run(ctx) } // returns why ctx ended

// fresh says why the copy should not be served; nil if it may be.
func (c *copied) fresh(within time.Duration) error {
	h := c.replica.Health()
	switch {
	case !h.Synced || !c.state.stats().synced:
		return fmt.Errorf("%s: not read yet (%s)", c.state.name, h)
	case h.Age > within:
		return fmt.Errorf("%s: the origin was last heard %s ago (%s)", c.state.name, h.Age.Round(time.Second), h)
	}
	return nil
}
