package relay

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
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
	// namespace is empty for all.
	namespace string
	of        *apiserver.Resource
	source    *kube.Source[Object]
	replica   *tarn.Replica[Object]
	state     *state
	reader    *apiserver.Reader

	// version asks the origin for its newest version, quiet for proofs that nothing has
	// happened to the resource.
	version prober
	quiet   proofs

	probes, quietWatches     atomic.Int64
	sentBytes, receivedBytes atomic.Int64
	served, forwarded        tally
}

func (r *Relay) newCopied(client *kube.Client, of *apiserver.Resource, resource schema.GroupVersionResource, namespace string) (*copied, error) {
	c := &copied{resource: resource, namespace: namespace, of: of}
	collection := kube.Collection{Resource: resource, Kind: of.Kind(), Namespace: namespace}
	var err error
	if c.source, err = kube.NewEncodedSource(client, collection, encodingOf(of), kube.SourceOptions{}); err != nil {
		return nil, err
	}
	name := collection.String()
	c.state = &state{logger: r.options.Logger, name: name, bytes: r.options.LogBytes, age: r.options.LogAge, maxWait: versionWait, latest: c.latest, prove: c.prove}
	c.replica, err = tarn.NewReplica(c.source, memory.New[Object](), tarn.Options[Object]{
		Name: name, WatchList: true, Logger: r.options.Logger,
		Equal: sameBytes,
		Sinks: []tarn.Sink[Object]{r.sink(c, client)},
	})
	if err != nil {
		return nil, err
	}
	c.reader = apiserver.NewReader(of, c.state, apiserver.ReaderOptions{WriteTimeout: r.options.WriteTimeout, OwnConnections: r.options.OwnConnections})
	c.version = prober{ask: c.askVersion, start: r.start}
	c.quiet = proofs{state: c.state, prove: c.askQuiet, start: r.start}
	return c, nil
}

// sink is the state, with a journal if the relay has a directory.
func (r *Relay) sink(c *copied, client *kube.Client) tarn.Sink[Object] {
	if r.options.Directory == "" {
		return c.state
	}
	place := "all"
	if c.namespace != "" {
		place = "namespace-" + c.namespace
	}
	dir := filepath.Join(r.options.Directory, strings.TrimSuffix(c.resource.Resource+"."+c.resource.Version+"."+c.resource.Group, "."), place)
	return &durableState{
		state:     c.state,
		serverUID: client.ServerUID,
		open: func() (*journal, restored, error) {
			return openJournal(dir, c.of, journalBounds{bytes: r.options.DirectoryBytes, age: r.options.DirectoryAge}, r.options.Logger)
		},
	}
}

// encodingOf takes objects as they came: in protobuf, or in JSON if they are custom ones.
func encodingOf(of *apiserver.Resource) kube.Encoding[Object] {
	return kube.Encoding[Object]{Protobuf: !of.Custom(), Decode: of.NewObject, Describe: describe}
}

func sameBytes(a, b Object) bool { return string(a.Bytes()) == string(b.Bytes()) }

func describe(o Object) (tarn.Meta, error) {
	return tarn.Meta{Key: tarn.Key(o.Key()), Version: tarn.Version(fmt.Sprint(o.Version())), UID: o.UID()}, nil
}

// run keeps the copy up to date until ctx ends.
func (c *copied) run(ctx context.Context) { _ = c.replica.Run(ctx) } // returns why ctx ended

// waitSynced waits until the copy has been read.
func (c *copied) waitSynced(ctx context.Context) error {
	if err := c.replica.WaitSynced(ctx); err != nil {
		return err
	}
	for !c.state.stats().synced {
		if c.state.await(ctx, 1, time.Second); ctx.Err() != nil {
			return fmt.Errorf("relay: %s: %w", c.state.name, context.Cause(ctx))
		}
	}
	return nil
}

// fresh says why the copy should not be served; nil if it may be. upstream is how old the
// copies of the origin are, if it is a relay.
func (c *copied) fresh(within, upstream time.Duration) error {
	h := c.replica.Health()
	unserved := unserved(h)
	switch {
	case !h.Synced || !c.state.stats().synced:
		return fmt.Errorf("%s: not read yet (%s)", c.state.name, h)
	case unserved.Lag > within:
		return fmt.Errorf("%s: changes that arrived %s ago are not served (%s)", c.state.name, unserved.Lag.Round(time.Second), unserved)
	case h.Age > within:
		return fmt.Errorf("%s: the last contact with the origin was %s ago (%s)", c.state.name, h.Age.Round(time.Second), h)
	case h.Age+upstream > within:
		return fmt.Errorf("%s: the last contact with the origin, a relay, was %s ago, and its own copy is %s old", c.state.name, h.Age.Round(time.Second), upstream.Round(time.Second))
	}
	return nil
}

// unserved says for how long a copy has known of changes that it does not serve.
func unserved(h tarn.Health) tarn.SinkHealth {
	if len(h.Sinks) == 0 {
		return tarn.SinkHealth{}
	}
	return h.Sinks[0]
}
