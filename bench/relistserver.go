package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/bench/contender"
	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/bench/report"
)

// relistServer is a relist from a server that does not page it: after watches that end at
// once, clients list at the version that they know, and servers answer such a list from
// memory and as a whole.
func relistServer() scenario {
	const pods = 20_000
	run := func(name string) func(context.Context, *meter) error {
		return func(ctx context.Context, m *meter) error { return runRelistServer(ctx, m, name, pods) }
	}
	return scenario{
		name: "relist-unpaged",
		doc: fmt.Sprintf("The watches of %s pods, none of which has changed, end at once; the client reads them all again from the server, by a list without pages. The wall time begins with that request.",
			report.Thousands(pods)),
		run: map[string]func(context.Context, *meter) error{"client-go": run("client-go list"), "tarn": run("tarn kube list")},
	}
}

// silentWatches is a transport whose watches deliver nothing, and end on command.
type silentWatches struct {
	next http.RoundTripper
	// over ends a watch for each value.
	over chan struct{}
	// lists and watches have a value for each request.
	lists, watches chan struct{}
}

func (s *silentWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/pods") {
		return s.next.RoundTrip(r)
	}
	if r.URL.Query().Get("watch") == "" {
		s.lists <- struct{}{}
		return s.next.RoundTrip(unpaged(r))
	}
	s.watches <- struct{}{}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf;stream=watch"}},
		Body:   io.NopCloser(&silence{r.Context(), s.over}),
	}, nil
}

// unpaged is the request as a kube-apiserver with a watch cache takes it: at a version,
// or at any, it answers from memory and ignores the limit. A client that got pages at
// first would ask for pages later too.
func unpaged(r *http.Request) *http.Request {
	q := r.URL.Query()
	if q.Get("resourceVersion") == "" {
		return r
	}
	q.Del("limit")
	r = r.Clone(r.Context())
	r.URL.RawQuery = q.Encode()
	return r
}

// silence is the body of a watch.
type silence struct {
	ctx  context.Context
	over <-chan struct{}
}

func (s *silence) Read([]byte) (int, error) {
	select {
	case <-s.over:
		return 0, io.EOF
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func runRelistServer(ctx context.Context, m *meter, name string, pods int) error {
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		return err
	}
	at, stop, err := startServer(ctx, replay.Config{Kind: podset.ReplicaSets, Pods: pods, Formats: []replay.Format{replay.Protobuf}})
	if err != nil {
		return err
	}
	defer stop()
	c, ok := contender.ByName(name)
	if !ok {
		return fmt.Errorf("there is no contender %q", name)
	}
	transport := &silentWatches{over: make(chan struct{}), lists: make(chan struct{}, 10_000), watches: make(chan struct{}, 10_000)}
	config, err := at.config()
	if err != nil {
		return err
	}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		transport.next = next
		return transport
	}
	copied, err := c.Start(ctx, contender.Setup{Config: config, Changed: func(metav1.Object) {}})
	if err != nil {
		return err
	}
	if err := copied.Synced(ctx); err != nil {
		return err
	}
	if _, err := receive(ctx, transport.watches, "the first watch"); err != nil {
		return err
	}
	m.start()
	m.record("steady heap", float64(m.heap), report.Bytes)
	if err := transport.relist(ctx, m.lap); err != nil {
		return err
	}
	m.stop()
	defer debug.SetGCPercent(debug.SetGCPercent(tightGC))
	steady, peak := liveHeap(), watchPeak()
	err = transport.relist(ctx, func() {})
	m.record("peak live heap over start", float64(peak.stop())-float64(steady), report.Bytes)
	runtime.KeepAlive(copied)
	return err
}

// relist ends watches until the client lists, and waits for the watch after that. It
// calls asked when the list begins.
func (s *silentWatches) relist(ctx context.Context, asked func()) error {
	for len(s.lists) > 0 {
		<-s.lists
	}
	for listed := false; !listed; {
		select {
		case s.over <- struct{}{}:
		case <-s.lists:
			listed = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	asked()
	for len(s.watches) > 0 {
		<-s.watches
	}
	if _, err := receive(ctx, s.watches, "the watch after the relist"); err != nil {
		return err
	}
	if more := len(s.lists); more > 0 {
		return fmt.Errorf("the relist took %d requests, and is to be one list without pages", more+1)
	}
	return nil
}
