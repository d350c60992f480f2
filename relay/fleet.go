package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
)

// A Fleet serves the relays of several clusters, each at /clusters/NAME/: a client has
// that address as its server, and everything below it is as at a relay of its own, with the
// versions of the cluster.
//
//   - /clusters lists the clusters, to everybody: names are no secrets here.
//   - /readyz succeeds while at least one of them is ready, so that an unreachable
//     cluster does not hide the others. /clusters/NAME/readyz is for one cluster.
//   - Relays are added and removed while it runs. The others do not notice.
//
// Why not one relay with several origins: callers, limits, versions and logs belong to
// one cluster, and a mistake could show a caller of one cluster the objects of another.
type Fleet struct {
	mu     sync.Mutex
	relays map[string]*fleetRelay
	// start runs a relay; nil while the fleet does not run.
	start func(*fleetRelay)
}

type fleetRelay struct {
	*Relay
	// stop ends the relay, and returns when it has ended; nil if it does not run.
	stop func()
}

// NewFleet returns a fleet without clusters.
func NewFleet() *Fleet { return &Fleet{relays: map[string]*fleetRelay{}} }

// Add adds the relay of a cluster, which the fleet runs.
func (f *Fleet) Add(cluster string, r *Relay) error {
	if err := kube.CheckCluster(cluster); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.relays[cluster] != nil {
		return fmt.Errorf("relay: there is a cluster %q already", cluster)
	}
	added := &fleetRelay{Relay: r}
	f.relays[cluster] = added
	if f.start != nil {
		f.start(added)
	}
	return nil
}

// Remove removes a cluster, closes its watches and returns when its relay has ended. A relay that
// does not run yet ends too.
func (f *Fleet) Remove(cluster string) error {
	f.mu.Lock()
	removed := f.relays[cluster]
	delete(f.relays, cluster)
	f.mu.Unlock()
	if removed == nil {
		return fmt.Errorf("relay: there is no cluster %q", cluster)
	}
	if removed.stop == nil {
		removed.discard()
		return nil
	}
	removed.stop()
	return nil
}

// Run runs the relays until ctx ends, and returns when all have ended. It may be called
// once.
func (f *Fleet) Run(ctx context.Context) error {
	var running sync.WaitGroup
	f.mu.Lock()
	f.start = func(r *fleetRelay) {
		own, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		r.stop = func() {
			cancel()
			<-ended
		}
		running.Go(func() {
			defer close(ended)
			defer cancel()
			_ = r.Relay.Run(own) // returns why own ended
		})
	}
	for _, r := range f.relays {
		f.start(r)
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.start = nil
	f.mu.Unlock()
	running.Wait()
	return context.Cause(ctx)
}

// Relays are those of the clusters, by name.
func (f *Fleet) Relays() map[string]*Relay {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]*Relay, len(f.relays))
	for name, r := range f.relays {
		all[name] = r.Relay
	}
	return all
}

// clustersPath is where the clusters are.
const clustersPath = "/clusters"

// ServeHTTP answers a request for one of the clusters, or about all of them.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := req.URL.EscapedPath()
	switch strings.TrimSuffix(path, "/") {
	case "/livez", "/healthz":
		answerProbe(w, nil)
		return
	case "/readyz":
		answerProbe(w, f.Ready())
		return
	case clustersPath:
		f.list(w)
		return
	}
	rest, ok := strings.CutPrefix(path, clustersPath+"/")
	if !ok {
		f.notFound(w, req, "the relay serves several clusters: the server of a client is this address with "+clustersPath+"/NAME behind it")
		return
	}
	escaped, below, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(escaped)
	relay := f.Relays()[name]
	if err != nil || relay == nil {
		f.notFound(w, req, fmt.Sprintf("the relay has no cluster %q", name))
		return
	}
	inside := req.Clone(req.Context())
	inside.URL.RawPath = "/" + below
	if inside.URL.Path, err = url.PathUnescape(inside.URL.RawPath); err != nil {
		f.notFound(w, req, "the path cannot be read")
		return
	}
	inside.RequestURI = inside.URL.RequestURI()
	relay.ServeHTTP(w, inside)
}

// notFound answers as an API server does, and names the clusters that exist.
func (f *Fleet) notFound(w http.ResponseWriter, req *http.Request, why string) {
	names := strings.Join(slices.Sorted(maps.Keys(f.Relays())), ", ")
	if names == "" {
		names = "none"
	}
	apiserver.SendError(w, req, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%s; its clusters are %s", why, names),
	}})
}

// Ready says why clients should use another server; nil if at least one cluster is ready.
func (f *Fleet) Ready() error {
	relays := f.Relays()
	for _, r := range relays {
		if r.Ready() == nil {
			return nil
		}
	}
	return fmt.Errorf("none of %d clusters is ready", len(relays))
}

// listedCluster is a cluster in the list of them.
type listedCluster struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
}

func (f *Fleet) list(w http.ResponseWriter) {
	relays, all := f.Relays(), []listedCluster{}
	for _, name := range slices.Sorted(maps.Keys(relays)) {
		all = append(all, listedCluster{name, relays[name].Ready() == nil})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string][]listedCluster{"clusters": all}) // the client may be gone
}
