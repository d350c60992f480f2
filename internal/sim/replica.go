package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
)

// replicated is a copy under test.
type replicated interface {
	run(ctx context.Context)
	// follow adds a follower and returns the function that removes it.
	follow(f *follower) (leave func())
	followers(f func(*follower, tarn.Lag))
	health() tarn.Health
	version() tarn.Version
	content() map[tarn.Key]tarn.Version
	// read reads the copy as a user does and checks that the store had that state.
	read() (State, bool)
}

// replicaCopy is a tarn.Replica with its memory store.
type replicaCopy struct {
	day     *day
	store   *recordingStore
	replica *tarn.Replica[*Object]

	mu   sync.Mutex
	subs map[*follower]*tarn.Subscription[*Object]
}

// corruptions holds the ways in which objects arrive damaged.
var corruptions = []func(*Object) *Object{
	func(*Object) *Object { return nil },
	func(*Object) *Object { return &Object{} },
	func(o *Object) *Object { return &Object{Name: o.Name, UID: o.UID, Version: o.Version, Poison: true} },
}

// source is the server with the faults of the day's wire.
func (d *day) source() tarn.Source[*Object] {
	var server tarn.Source[*Object] = d.server
	if d.cfg.Source != nil {
		server = d.cfg.Source(d.server)
	}
	return d.cfg.Plant.source(faults.Source(server, d.plan, faults.SourceOptions[*Object]{Corrupt: corruptions}))
}

var errPoison = errors.New("poison")

func refusePoison(o *Object) (*Object, error) {
	if o.Poison {
		return nil, errPoison
	}
	return o, nil
}

func newReplicaCopy(d *day) *replicaCopy {
	c := &replicaCopy{day: d, store: newRecordingStore(), subs: map[*follower]*tarn.Subscription[*Object]{}}
	random := d.chance("replica")
	size := random.Int64N(4)
	var err error
	c.replica, err = tarn.NewReplica(d.source(), d.cfg.Plant.store(c.store), tarn.Options[*Object]{
		Name:      "objects",
		WatchList: random.IntN(2) == 0,
		PageSize:  func() int64 { return size },
		Transform: refusePoison,
		Jitter:    d.jitter,
		OnError:   func(_ context.Context, err error) { d.record.note("copy", "reports: %v", err) },
		OnBad:     func(_ context.Context, b tarn.BadObject) { d.record.note("copy", "cannot take %q: %v", b.Key, b.Err) },
	})
	if err != nil {
		panic(err)
	}
	c.store.judge = func(v tarn.Version, content State) { d.applied(v, versions(content)) }
	return c
}

func versions(s State) map[tarn.Key]tarn.Version {
	out := make(map[tarn.Key]tarn.Version, len(s))
	for key, o := range s {
		out[key] = o.Version
	}
	return out
}

func (c *replicaCopy) run(ctx context.Context) { _ = c.replica.Run(ctx) }

func (c *replicaCopy) follow(f *follower) func() {
	take := c.day.cfg.Plant.deliver(func(ch tarn.Change[*Object]) {
		f.take(ch.Type, ch.Key, ch.Old, told{object: ch.Object, version: ch.Object.Version, uid: ch.Object.UID})
	})
	sub, err := c.replica.Subscribe(take, tarn.SubscribeOptions{Name: f.name, Bound: c.day.cfg.Plant.bound(backlogBound)})
	if err != nil {
		c.day.record.violate(f.name, "order", "could not follow: %v", err)
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subs[f] = sub
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.subs, f)
		sub.Close()
	}
}

func (c *replicaCopy) followers(visit func(*follower, tarn.Lag)) {
	c.mu.Lock()
	subs := maps.Clone(c.subs)
	c.mu.Unlock()
	for _, f := range slices.SortedFunc(maps.Keys(subs), func(a, b *follower) int { return cmpNames(a, b) }) {
		visit(f, subs[f].Lag())
	}
}

func (c *replicaCopy) health() tarn.Health   { return c.replica.Health() }
func (c *replicaCopy) version() tarn.Version { return c.replica.Version() }

func (c *replicaCopy) content() map[tarn.Key]tarn.Version {
	return versions(maps.Collect(c.replica.All()))
}

func (c *replicaCopy) read() (State, bool) {
	content := State(maps.Collect(c.replica.All()))
	return content, c.store.had(content)
}
