package relay

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// Health says what a relay does, and for which clients. Counters start at the creation of
// the relay.
type Health struct {
	// Origin is the address of the origin.
	Origin string
	Since  time.Time
	// NotReady says why clients should use another server; nil if the relay is ready.
	NotReady error
	// Resources are in the order of [Options.Resources].
	Resources []Stats
	// Clients are those with open watches, those with most watches first.
	Clients []Client

	// Passed counts the requests that went to the origin because the relay has no copy
	// for them: writes, discovery, other resources.
	Passed int64
	// Refused counts the requests that were refused, by cause: "limit" (of a caller, or
	// of the TokenReviews that run at once), "unauthorized", "forbidden", "not reviewed"
	// (the origin could not be asked), "loop", "certificate" (see [Options.ClientCAs]),
	// "path" (it leads out of the cluster); "fault" are watches that a fault of the relay ended.
	Refused map[string]int64
	// Reviews counts the questions to the origin about callers and their rights.
	Reviews int64
}

// Stats is what the relay does for one copy: a resource, or one namespace of it.
type Stats struct {
	Resource schema.GroupVersionResource
	// Namespace is empty if the copy is of all namespaces.
	Namespace string
	Health    tarn.Health
	// Objects are in the copy, at Version.
	Objects int
	Version int64
	// Events is the number of events in the log, and LogBytes their memory in addition to
	// the present objects. LogSince is when the oldest arrived; zero without events.
	Events   int
	LogBytes int64
	LogSince time.Time
	// DiskBytes is the size of the directory, and DiskErr says why it cannot be written.
	DiskBytes int64
	DiskErr   error
	// ServedBy counts the requests that were answered from the copy, by verb: get, list
	// or watch.
	ServedBy map[string]int64
	// ForwardedBy counts the reads that the copy could not answer, by cause: "behind"
	// (not proved to be as new as the origin), "unproved" (the origin did not answer the
	// probe), "get without a version", "no token", "impersonation", "websocket", "table"
	// (its columns are not known), "field selector" (its fields are not known).
	ForwardedBy map[string]int64
	Traffic
}

// Name is the resource, with the namespace in parentheses if the copy is of one.
func (s Stats) Name() string {
	name := s.Resource.GroupResource().String()
	if s.Namespace != "" {
		name += " (" + s.Namespace + ")"
	}
	return name
}

// Traffic is what went in and out.
type Traffic struct {
	// Watches are open now.
	Watches int
	// Served counts the requests that were answered from the copy, Forwarded those that
	// the copy could not answer, Probes and QuietWatches the questions to the origin.
	Served, Forwarded, Probes, QuietWatches int64
	// SentEvents were sent to watches, bookmarks not counted. SentBytes are of all answers
	// from the copy, lists included.
	SentEvents, SentBytes int64
	// ReceivedEvents and ReceivedBytes came from the origin, to keep the copy.
	ReceivedEvents, ReceivedBytes int64
	// Gaps counts how often states of the origin were missed, and SlowClients the watches
	// that were closed because their clients did not read.
	Gaps, SlowClients int64
}

// SavedBytes is what the origin did not have to send because the relay did.
func (t Traffic) SavedBytes() int64 { return t.SentBytes - t.ReceivedBytes }

// Total adds the traffic of all resources up.
func (h Health) Total() (sum Traffic) {
	for _, s := range h.Resources {
		sum.Watches += s.Watches
		sum.Served += s.Served
		sum.Forwarded += s.Forwarded
		sum.Probes += s.Probes
		sum.QuietWatches += s.QuietWatches
		sum.SentEvents += s.SentEvents
		sum.SentBytes += s.SentBytes
		sum.ReceivedEvents += s.ReceivedEvents
		sum.ReceivedBytes += s.ReceivedBytes
		sum.Gaps += s.Gaps
		sum.SlowClients += s.SlowClients
	}
	return sum
}

// Health returns what the relay does.
func (r *Relay) Health() Health {
	return Health{
		Origin: r.options.Config.Host, Since: r.counts.since, NotReady: r.Ready(),
		Resources: r.Stats(), Clients: r.counts.clients.list(),
		Passed: r.counts.passed.Load(), Refused: r.counts.refused.read(), Reviews: r.counts.reviews.Load(),
	}
}

// Stats returns a line for each copy, in the order of [Options.Resources]. A custom
// resource without a definition has no line.
func (r *Relay) Stats() []Stats {
	var all []Stats
	for c := range r.everyCopy() {
		all = append(all, c.figures())
	}
	return all
}

func (c *copied) figures() Stats {
	held, sent := c.state.stats(), c.reader.Sent()
	disk, diskErr := c.state.disk()
	s := Stats{
		Resource: c.resource, Namespace: c.namespace, Health: c.replica.Health(), Objects: held.objects, Version: held.version,
		Events: held.events, LogBytes: held.logBytes, LogSince: held.logSince,
		DiskBytes: disk, DiskErr: diskErr,
		ServedBy: c.served.read(), ForwardedBy: c.forwarded.read(),
		Traffic: Traffic{
			Watches: held.watches, Probes: c.probes.Load(), QuietWatches: c.quietWatches.Load(),
			SentEvents: sent.Events, SentBytes: c.sentBytes.Load(), ReceivedBytes: c.receivedBytes.Load(),
			Gaps: held.gaps, SlowClients: sent.SlowClients + c.state.overruns.Load(),
		},
	}
	s.ReceivedEvents = s.Health.Events
	for _, n := range s.ServedBy {
		s.Served += n
	}
	for _, n := range s.ForwardedBy {
		s.Forwarded += n
	}
	return s
}

// counts are what a relay counts beside its resources.
type counts struct {
	since           time.Time
	clients         clients
	refused         tally
	passed, reviews atomic.Int64
}

// tally counts requests by cause. It is locked once for a request, never for an event.
type tally struct {
	mu sync.Mutex
	by map[string]int64
}

func (t *tally) add(cause string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]int64{}
	}
	t.by[cause]++
}

func (t *tally) read() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.by)
}

// refuse counts a request that is refused because of who makes it, and returns err.
func (r *Relay) refuse(err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		r.counts.refused.add("unauthorized")
	case apierrors.IsForbidden(err):
		r.counts.refused.add("forbidden")
	case apierrors.IsServiceUnavailable(err):
		r.counts.refused.add("not reviewed")
	case apierrors.IsTooManyRequests(err):
		r.counts.refused.add("limit")
	}
	return err
}

// countReceived returns where the bytes that answer a request of the relay are counted.
func (r *Relay) countReceived(req *http.Request) *atomic.Int64 {
	if req.Method != http.MethodGet {
		r.counts.reviews.Add(1)
		return nil
	}
	to, ok := apiserver.ParsePath(req.URL.Path)
	if s := r.served[to.Resource]; ok && s != nil {
		if c, err := r.copyOf(s, to); err == nil && c != nil {
			return &c.receivedBytes
		}
	}
	return nil
}

// FreshWithin is how old a copy may be before the relay is not ready.
func (r *Relay) FreshWithin() time.Duration { return r.options.FreshWithin }
