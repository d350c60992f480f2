package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
)

// Relay serves copies of resources of an origin. It is an [http.Handler].
//
//   - Versions are the origin's. A relay never invents one; only deletes that are found
//     after a gap carry the version before the gap.
//   - A request that the copies cannot answer goes to the origin, with the credentials
//     that it came with.
//   - Only callers that the Gate allows get answers from a copy.
//   - Run returns when everything that the relay started has ended.
type Relay struct {
	options Options
	// id distinguishes relays, to find loops.
	id     string
	gate   Gate
	origin *origin
	served map[schema.GroupVersionResource]*served
	limits limits
	counts counts
	// certificates names callers that have one.
	certificates certificates
	// upstream is how old the copies of the origin are, if it is a relay.
	upstream *upstreamAge
	// lock is that of the directory, nil without one.
	lock *os.File

	// draining ends when the relay is to stop, ctx when it has drained. running counts
	// what has to end then; admission is held while it grows.
	draining context.Context
	drain    context.CancelFunc
	ctx      context.Context
	cancel   context.CancelFunc

	admission sync.Mutex
	running   sync.WaitGroup
	// requests counts those that are being answered.
	requests atomic.Int64
}

var errClosed = errors.New("the relay has been stopped")

// New makes a relay. It serves once it runs.
func New(options Options) (*Relay, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	r := &Relay{options: options.withDefaults(), gate: options.Gate, served: map[schema.GroupVersionResource]*served{}}
	r.counts.since = time.Now()
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	r.id = hex.EncodeToString(id[:])
	r.certificates.roots = options.ClientCAs
	r.limits = limits{watches: r.options.CallerWatches, requests: r.options.CallerRequests}
	r.draining, r.drain = context.WithCancel(context.Background())
	r.ctx, r.cancel = context.WithCancel(context.Background())

	config := rest.CopyConfig(options.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return hop{id: r.id, counts: r.countReceived, note: func(header http.Header) { r.upstream.note(header) }, next: next}
	})
	var err error
	if r.upstream, err = newUpstreamAge(config, r.options.FreshWithin); err != nil {
		return nil, err
	}
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	if r.origin, err = newOrigin(options.Config, r.id, options.Impersonate); err != nil {
		return nil, err
	}
	if r.gate == nil {
		if r.gate, err = NewReviews(config); err != nil {
			return nil, err
		}
	}
	if r.lock, err = lockDirectory(options.Directory); err != nil {
		return nil, err
	}
	for _, resource := range options.Resources {
		if r.served[resource], err = r.newServed(client, resource); err != nil {
			_ = r.lock.Close() // also if there is none
			return nil, err
		}
	}
	return r, nil
}

func (o Options) validate() error {
	if o.Config == nil || len(o.Resources) == 0 {
		return errors.New("relay: a relay needs the config of its origin, and at least one resource")
	}
	for _, bound := range []struct {
		name  string
		value int64
	}{
		{"LogBytes", o.LogBytes}, {"LogAge", int64(o.LogAge)},
		{"DirectoryBytes", o.DirectoryBytes}, {"DirectoryAge", int64(o.DirectoryAge)},
		{"FreshWithin", int64(o.FreshWithin)}, {"CallerWatches", int64(o.CallerWatches)}, {"CallerRequests", int64(o.CallerRequests)},
		{"WriteTimeout", int64(o.WriteTimeout)}, {"DrainTime", int64(o.DrainTime)},
	} {
		if bound.value < 0 {
			return fmt.Errorf("relay: %s is negative (%d): leave it out for its default", bound.name, bound.value)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.LogBytes = cmp.Or(o.LogBytes, 64<<20)
	o.LogAge = cmp.Or(o.LogAge, time.Hour)
	o.DirectoryBytes = cmp.Or(o.DirectoryBytes, 4<<30)
	o.DirectoryAge = cmp.Or(o.DirectoryAge, 24*time.Hour)
	o.FreshWithin = cmp.Or(o.FreshWithin, 3*time.Minute)
	o.CallerWatches = cmp.Or(o.CallerWatches, 10_000)
	o.CallerRequests = cmp.Or(o.CallerRequests, 200)
	o.DrainTime = cmp.Or(o.DrainTime, 5*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Run keeps the copies up to date until ctx ends. Then the relay is no longer ready, and
// closes its watches one by one. Other requests have until the end of
// [Options.DrainTime]. It returns when all requests have ended. It may be called once.
func (r *Relay) Run(ctx context.Context) error {
	if r.ctx.Err() != nil {
		return errClosed // it was discarded, and another relay may use its directory
	}
	copies, stop := context.WithCancel(context.Background())
	defer stop()
	var following sync.WaitGroup
	for _, s := range r.served {
		following.Go(func() { s.run(copies) })
	}
	following.Go(func() { r.upstream.run(copies) })
	<-ctx.Done()
	r.endRequests()
	stop()
	following.Wait()
	r.release()
	return context.Cause(ctx)
}

// discard ends a relay that never runs.
func (r *Relay) discard() {
	r.endRequests()
	r.release()
}

// endRequests waits for the requests, ends those that take too long, and everything else that
// they started.
func (r *Relay) endRequests() {
	r.drain()
	r.awaitRequests()
	r.admission.Lock()
	r.cancel()
	r.admission.Unlock()
	for c := range r.everyCopy() {
		c.state.end()
	}
	r.running.Wait()
}

// release closes the idle connections, and lets others use the directory.
func (r *Relay) release() {
	r.origin.close()
	r.upstream.client.CloseIdleConnections()
	_ = r.lock.Close() // also if there is none
}

// awaitRequests waits until all requests have been answered, for the drain time at most. New
// ones are answered meanwhile: clients learn later than the relay that they should go elsewhere.
func (r *Relay) awaitRequests() {
	timer := time.NewTimer(r.options.DrainTime)
	defer timer.Stop()
	tick := time.NewTicker(max(r.options.DrainTime/50, time.Millisecond))
	defer tick.Stop()
	for r.requests.Load() > 0 {
		select {
		case <-timer.C:
			return
		case <-tick.C:
		}
	}
}

// enter counts something that the relay does; false if the relay has ended.
func (r *Relay) enter() bool {
	r.admission.Lock()
	defer r.admission.Unlock()
	if r.ctx.Err() != nil {
		return false
	}
	r.running.Add(1)
	return true
}

// start runs something that ends with the relay.
func (r *Relay) start(run func(ctx context.Context)) bool {
	if !r.enter() {
		return false
	}
	go func() {
		defer r.running.Done()
		run(r.ctx)
	}()
	return true
}

// Ready says why clients should use another server; nil if the relay is ready.
func (r *Relay) Ready() error {
	if r.draining.Err() != nil {
		return errors.New("the relay is being stopped")
	}
	var problems []error
	for _, resource := range r.options.Resources {
		problems = append(problems, r.served[resource].fresh(r.options.FreshWithin, r.upstream.now()))
	}
	return errors.Join(problems...)
}

// WaitSynced waits until all copies have been read.
func (r *Relay) WaitSynced(ctx context.Context) error {
	for _, resource := range r.options.Resources {
		if err := r.served[resource].waitSynced(ctx); err != nil {
			return err
		}
	}
	return nil
}
