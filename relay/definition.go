package relay

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
)

// definition follows the definition of a custom resource, by a copy of one object.
//
// When the definition changes, the copies of the resource are replaced: objects may have
// other defaults and other fields under the versions that they had. Watches end then, as
// those of the API server do, and their clients come again. While there is no definition,
// the origin answers.
type definition struct {
	relay   *Relay
	served  *served
	replica *tarn.Replica[Object]

	// stop ends the copies of the present definition. following counts what follows them.
	stop      context.CancelFunc
	following sync.WaitGroup
	of        *apiserver.Resource
	// known is closed when the first definition was taken.
	known chan struct{}
}

func (r *Relay) newDefinition(s *served) (*definition, error) {
	of, ok := apiserver.BuiltinResource(apiserver.Definitions)
	if !ok {
		return nil, fmt.Errorf("relay: this program does not know %s", apiserver.Definitions)
	}
	source, err := kube.NewEncodedSource(s.client, kube.Collection{
		Resource: apiserver.Definitions, Kind: of.Kind(), FieldSelector: nameField + "=" + s.resource.GroupResource().String(),
	}, encodingOf(of), kube.SourceOptions{})
	if err != nil {
		return nil, err
	}
	d := &definition{relay: r, served: s, known: make(chan struct{})}
	d.replica, err = tarn.NewReplica(source, memory.New[Object](), tarn.Options[Object]{
		Name: "definition of " + s.resource.GroupResource().String(), WatchList: true, Logger: r.options.Logger, Equal: sameBytes,
	})
	return d, err
}

// run follows the definition, and with it the resource, until ctx ends.
func (d *definition) run(ctx context.Context) {
	var replica sync.WaitGroup
	known := sync.OnceFunc(func() { close(d.known) })
	replica.Go(func() { _ = d.replica.Run(ctx) }) // returns why ctx ended
	for c := range d.replica.Changes(ctx) {
		if c.Type == tarn.Delete {
			d.awaitDeletes(ctx)
			d.end()
			continue
		}
		d.define(ctx, c.Object)
		known()
	}
	replica.Wait()
	d.end()
}

// waitSynced waits until it is known whether there is a definition, and until it was taken.
func (d *definition) waitSynced(ctx context.Context) error {
	if err := d.replica.WaitSynced(ctx); err != nil || d.replica.Len() == 0 {
		return err
	}
	select {
	case <-d.known:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("relay: %s: %w", d.served.resource.GroupResource(), context.Cause(ctx))
	}
}

// define makes copies as a definition says. One that cannot be served ends them.
func (d *definition) define(ctx context.Context, object Object) {
	of, err := apiserver.DefinedResource(object, d.served.resource.Version)
	if err == nil && d.of != nil && d.of.SameDefinition(of) {
		return
	}
	d.end()
	if err == nil {
		err = d.relay.begin(d.served, of)
	}
	if err != nil {
		d.relay.options.Logger.Warn("The origin answers for a custom resource, because its definition cannot be used.",
			"resource", d.served.resource.String(), "cause", err)
		return
	}
	d.of = of
	running, stop := context.WithCancel(ctx)
	d.stop = stop
	for c := range d.served.all() {
		d.following.Go(func() { c.run(running) })
	}
}

// deletePatience is how long the deletes of the objects of a definition may take to arrive
// after that of the definition, which comes by another watch.
const deletePatience = 2 * time.Second

// awaitDeletes waits until the objects of a definition that has gone have gone too, so that
// watches are sent their deletes.
func (d *definition) awaitDeletes(ctx context.Context) {
	waiting, cancel := context.WithTimeout(ctx, deletePatience)
	defer cancel()
	for c := range d.served.all() {
		for s := c.state.stats(); s.objects > 0 && waiting.Err() == nil; s = c.state.stats() {
			c.state.await(waiting, s.version+1, deletePatience)
		}
	}
}

// end ends the copies and their watches.
func (d *definition) end() {
	if d.stop == nil {
		return
	}
	ended := *d.served.copies.Swap(&map[string]*copied{})
	for _, c := range ended {
		c.state.end()
	}
	d.stop()
	d.following.Wait()
	d.stop, d.of = nil, nil
}
