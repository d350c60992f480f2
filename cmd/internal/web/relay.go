package web

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tarnproject/tarn/internal/render"
	"github.com/tarnproject/tarn/relay"
)

// RelayHealth is the health of a relay, or of the relays of a fleet.
type RelayHealth struct {
	// Clusters has the health of each relay by the name of its cluster. A single relay has
	// no name.
	Clusters map[string]relay.Health
	// NotReady says why clients should not be sent to the relay.
	NotReady error
}

// ListenRelay opens the address of the options for the page of a relay, or of those of a
// fleet: the state of the copies, the watching clients, and the load that the origins are
// spared. The rules of [Listen] apply, and Options.Metrics is required.
func ListenRelay(health func() RelayHealth, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.Check(); err != nil {
		return nil, err
	}
	site, err := newRelaySite(health, opts)
	if err != nil {
		return nil, err
	}
	return listen(site, opts)
}

func newRelaySite(health func() RelayHealth, opts Options) (*Site, error) {
	if health == nil || opts.Metrics == nil {
		return nil, errors.New("web: the page of a relay needs the relay's health and its metrics")
	}
	token, err := opts.newToken()
	if err != nil {
		return nil, err
	}
	opts.warnOfToken()
	s := &Site{relay: health, options: opts, guard: newGuard(token, opts)}
	mux := http.NewServeMux()
	mux.HandleFunc(sessionPath, answer(s.session))
	mux.HandleFunc("/api/tables", answer(s.tables))
	mux.HandleFunc("/api/events", s.events)
	mux.HandleFunc("/api/", unknown)
	mux.HandleFunc("/debug/", unknown)
	mux.Handle("/metrics", opts.Metrics)
	mux.HandleFunc("/healthz", s.alive)
	mux.HandleFunc("/readyz", s.ready)
	mux.Handle("/", newFiles())
	s.handler = s.logged(s.guard.protect(deadline(mux)))
	return s, nil
}

// relayStatus is the state of a relay, or of the relays of a fleet together.
type relayStatus struct {
	// Origin is empty for a fleet, which has Clusters.
	Origin    string          `json:"origin,omitempty"`
	Clusters  []relayCluster  `json:"clusters,omitempty"`
	Since     string          `json:"since"`
	NotReady  string          `json:"notReady,omitempty"`
	Resources []relayResource `json:"resources"`
	// Clients are the clients with the most watches; ClientCount counts all.
	Clients     []relayClient    `json:"clients"`
	ClientCount int              `json:"clientCount"`
	Passed      int64            `json:"passed"`
	Refused     map[string]int64 `json:"refused"`
}

// relayCluster is a cluster of a fleet.
type relayCluster struct {
	Name     string `json:"name"`
	Origin   string `json:"origin"`
	NotReady string `json:"notReady,omitempty"`
}

type relayResource struct {
	Cluster string `json:"cluster,omitempty"`
	Name    string `json:"name"`
	State   string `json:"state"`
	Synced  bool   `json:"synced"`
	Fresh   bool   `json:"fresh"`
	Error   string `json:"error,omitempty"`
	Version int64  `json:"version"`
	// Age is the seconds since the last contact with the origin.
	Age     float64 `json:"age"`
	Objects int     `json:"objects"`
	Bad     int     `json:"bad"`
	Watches int     `json:"watches"`
	// Counters are since the relay began.
	SentEvents     int64            `json:"sentEvents"`
	SentBytes      int64            `json:"sentBytes"`
	ReceivedEvents int64            `json:"receivedEvents"`
	ReceivedBytes  int64            `json:"receivedBytes"`
	Served         int64            `json:"served"`
	Forwarded      map[string]int64 `json:"forwarded"`
	Relists        map[string]int64 `json:"relists"`
	Gaps           int64            `json:"gaps"`
	SlowClients    int64            `json:"slowClients"`
	LogBytes       int64            `json:"logBytes"`
	// LogReach is how many seconds of changes the log holds.
	LogReach float64 `json:"logReach"`
}

type relayClient struct {
	Cluster   string `json:"cluster,omitempty"`
	Resource  string `json:"resource"`
	Agent     string `json:"agent"`
	Caller    string `json:"caller"`
	Watches   int    `json:"watches"`
	SentBytes int64  `json:"sentBytes"`
	Since     string `json:"since"`
}

// mostClients bounds what is sent to each page every second.
const mostClients = 50

func statusOf(all RelayHealth, freshWithin time.Duration) *relayStatus {
	s := &relayStatus{Resources: []relayResource{}, Clients: []relayClient{}, Refused: map[string]int64{}}
	if all.NotReady != nil {
		s.NotReady = render.CutNote(all.NotReady.Error(), maxError)
	}
	var since time.Time
	for _, cluster := range slices.Sorted(maps.Keys(all.Clusters)) {
		h := all.Clusters[cluster]
		if cluster == "" {
			s.Origin = h.Origin
		} else {
			s.Clusters = append(s.Clusters, clusterOf(cluster, h))
		}
		if since.IsZero() || h.Since.Before(since) {
			since = h.Since
		}
		s.add(cluster, h, freshWithin)
	}
	s.Since, s.ClientCount = stamp(since), len(s.Clients)
	slices.SortStableFunc(s.Clients, func(a, b relayClient) int { return b.Watches - a.Watches })
	s.Clients = s.Clients[:min(len(s.Clients), mostClients)]
	return s
}

func clusterOf(name string, h relay.Health) relayCluster {
	c := relayCluster{Name: name, Origin: h.Origin}
	if h.NotReady != nil {
		c.NotReady = render.CutNote(h.NotReady.Error(), maxError)
	}
	return c
}

// add adds the figures of one relay.
func (s *relayStatus) add(cluster string, h relay.Health, freshWithin time.Duration) {
	s.Passed += h.Passed
	for why, n := range h.Refused {
		s.Refused[why] += n
	}
	for _, r := range h.Resources {
		found := relayResource{
			Cluster: cluster, Name: r.Name(), State: r.Health.State.String(), Synced: r.Health.Synced, Fresh: r.Health.Fresh(freshWithin),
			Version: r.Version, Age: rounded(r.Health.Age.Seconds()), Objects: r.Objects, Bad: r.Health.BadCount, Watches: r.Watches,
			SentEvents: r.SentEvents, SentBytes: r.SentBytes, ReceivedEvents: r.ReceivedEvents, ReceivedBytes: r.ReceivedBytes,
			Served: r.Served, Forwarded: counted(r.ForwardedBy), Relists: counted(r.Health.Lists),
			Gaps: r.Gaps, SlowClients: r.SlowClients, LogBytes: r.LogBytes,
		}
		if !r.LogSince.IsZero() {
			found.LogReach = rounded(time.Since(r.LogSince).Seconds())
		}
		if r.Health.Err != nil {
			found.Error = render.CutNote(unnamed(found.Name, r.Health.Err.Error()), maxError)
		} else if r.DiskErr != nil {
			found.Error = render.CutNote(r.DiskErr.Error(), maxError)
		}
		s.Resources = append(s.Resources, found)
	}
	for _, c := range h.Clients {
		s.Clients = append(s.Clients, relayClient{
			Cluster: cluster, Resource: c.Resource.GroupResource().String(), Agent: c.Agent, Caller: cmp.Or(c.Caller, "–"),
			Watches: c.Watches, SentBytes: c.SentBytes, Since: stamp(c.Since),
		})
	}
}

func counted(by map[string]int64) map[string]int64 {
	if by == nil {
		return map[string]int64{}
	}
	return by
}
