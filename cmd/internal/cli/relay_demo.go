package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/demo"
	"github.com/tarnproject/tarn/relay"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	relayDemoPods     = 200
	relayDemoRate     = 20
	relayDemoWatchers = 100
	// relayDemoReports is the interval between reports of what was delivered.
	relayDemoReports = 2 * time.Second
)

// relayDemo is a busy cluster in the process, and clients that watch it through a relay.
type relayDemo struct {
	server *apiserver.Server
	token  string

	stop      context.CancelFunc
	running   sync.WaitGroup
	delivered atomic.Int64
}

// startRelayDemo starts the cluster. ctx cancels the start; after that close ends it.
func startRelayDemo(ctx context.Context, logger *slog.Logger) (*relayDemo, error) {
	d := &relayDemo{token: rand.Text()}
	var err error
	if d.server, err = apiserver.Start(apiserver.Options{TLS: true, Tokens: []string{d.token}, BookmarkInterval: 5 * time.Second}); err != nil {
		return nil, err
	}
	target, err := demo.On(d.server)
	if err != nil {
		d.server.Close()
		return nil, err
	}
	workload, err := demo.Build(ctx, target, demo.Config{Pods: relayDemoPods, Rate: relayDemoRate, Seed: 1, Logger: logger})
	if err != nil {
		d.server.Close()
		return nil, err
	}
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	d.running.Go(func() { workload.Run(ctx) })
	return d, nil
}

// resources are the resources that the demonstration relays.
func (d *relayDemo) resources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "nodes"}}
}

func (d *relayDemo) close() {
	d.stop()
	d.running.Wait()
	d.server.Close()
}

// show makes clients watch at an address and prints what they receive, until ctx ends.
func (d *relayDemo) show(ctx context.Context, a *app, r *relay.Relay, address string) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { d.watch(ctx, address) })
	d.report(ctx, a, r)
}

// watch makes many clients watch all pods at an address, until ctx ends.
func (d *relayDemo) watch(ctx context.Context, address string) {
	transport := &http.Transport{MaxIdleConnsPerHost: relayDemoWatchers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var watchers sync.WaitGroup
	for range relayDemoWatchers {
		watchers.Go(func() {
			for version := "0"; ctx.Err() == nil; {
				version = d.watchFrom(ctx, client, address, version)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
		})
	}
	watchers.Wait()
}

// watchFrom counts the events after a version until the watch ends, and returns the version
// from which to continue.
func (d *relayDemo) watchFrom(ctx context.Context, client *http.Client, address, version string) string {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"api/v1/pods?"+query.Encode(), nil)
	if err != nil {
		return version
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	resp, err := client.Do(req)
	if err != nil {
		return version // the relay is not available yet, or no longer
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "0"
	}
	for lines := json.NewDecoder(bufio.NewReader(resp.Body)); ; {
		var event struct {
			Type   string
			Object struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := lines.Decode(&event); err != nil {
			return version
		}
		if event.Type == "ERROR" {
			return "0"
		}
		version = event.Object.Metadata.ResourceVersion
		if event.Type != "BOOKMARK" {
			d.delivered.Add(1)
		}
	}
}

// report prints at intervals what the relay does, until ctx ends.
func (d *relayDemo) report(ctx context.Context, a *app, r *relay.Relay) {
	tick := time.NewTicker(relayDemoReports)
	defer tick.Stop()
	for before := int64(0); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		watches, copies := 0, r.Stats()
		for _, s := range copies {
			watches += s.Watches
		}
		now := d.delivered.Load()
		fmt.Fprintf(a.out, "%s of the relay, which watches the cluster once for each of %s; %s delivered, %d a second; pods at version %d\n",
			plural(watches, "client"), plural(len(copies), "resource"), plural(int(now), "event"), (now-before)/int64(relayDemoReports/time.Second), copies[0].Version)
		before = now
	}
}
