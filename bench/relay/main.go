// Program relay measures a relay beside the kube-apiserver behind it: what a delivered
// event costs either of them, what an open watch holds, how late events arrive, and what
// a relay spares the server.
//
//	go run ./relay -origin server.kubeconfig -origin-pid 123 -relay relay.kubeconfig -relay-pid 456 -relay-pprof http://127.0.0.1:8278
//
// Both servers run in processes of their own, and so do the clients: in this one. The
// server is an empty cluster without controllers, and is filled with real pods. `make
// bench-relay` starts everything.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/bench/report"
)

var (
	originConfig = flag.String("origin", "", "kubeconfig of the kube-apiserver")
	relayConfig  = flag.String("relay", "", "kubeconfig of the relay")
	originPID    = flag.Int("origin-pid", 0, "process of the kube-apiserver")
	relayPID     = flag.Int("relay-pid", 0, "process of the relay")
	relayPprof   = flag.String("relay-pprof", "", "`address` of the relay's profiles, such as http://127.0.0.1:8278")

	pods     = flag.Int("pods", 2000, "how many real pods there are")
	watchers = flag.Int("watchers", 400, "how many watches of all pods are compared")
	updates  = flag.Int("updates", 200, "how many pods are updated in each measurement")
	rate     = flag.Float64("rate", 20, "how many of them in a second")
	rounds   = flag.Int("rounds", 3, "how often the two servers are compared, in turns; the medians are shown")
	loaded   = flag.Int("loaded", 1000, "how many watches of all pods the relay alone is loaded with")
	crowd    = flag.Int("crowd", 10_000, "how many watches of small objects the relay alone has, on 100 connections")
	nodes    = flag.Int("nodes", 5000, "how many watches of the pods of one node each it has")
	initial  = flag.Int("initial", 200, "how many clients ask for the initial events of all pods at once")
	data     = flag.String("data", "../../shared/data/pods.pb.zst", "`file` with real pods")
	only     = flag.String("only", "", "`measurements` to make, by their names and with commas: deliveries, load, stalled, initial, nodes, crowd, reconnect; all if empty")
	profiles = flag.String("profiles", "", "`folder` into which the servers' profiles are written; none if empty")
	docs     = flag.String("docs", "", "the page whose section is written; only printed if empty")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if *originConfig == "" || *relayConfig == "" || *originPID == 0 || *relayPID == 0 || *relayPprof == "" {
		return errors.New("the kubeconfigs and processes of both servers are needed, and the relay's profiles: -origin, -origin-pid, -relay, -relay-pid, -relay-pprof; make bench-relay starts them")
	}
	origin, err := newServer("kube-apiserver", *originConfig, *originPID, "")
	if err != nil {
		return err
	}
	relay, err := newServer("relay", *relayConfig, *relayPID, *relayPprof)
	if err != nil {
		return err
	}
	writer, err := newWriter(ctx, origin)
	if err != nil {
		return err
	}
	b := &benchmark{origin: origin, relay: relay, writer: writer}
	for _, m := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"deliveries", b.deliveries}, {"load", b.load}, {"stalled", b.stalled}, {"initial", b.initialEvents},
		{"nodes", b.nodeWatches}, {"crowd", b.crowd}, {"reconnect", b.reconnect},
	} {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), m.name) {
			continue
		}
		if err := m.run(ctx); err != nil {
			return err
		}
	}
	text := b.text()
	fmt.Print(text)
	if *docs == "" {
		return nil
	}
	return report.WriteSection(*docs, "relay", text)
}

// A server is one that clients watch, and whose process is measured.
type server struct {
	name   string
	config *rest.Config
	// profiles is the address at which Go's profiles are served.
	profiles string
	process
}

// benchmark is what was measured so far.
type benchmark struct {
	origin, relay *server
	writer        *writer
	lines         []string
}

// say adds a line to the report, and shows it.
func (b *benchmark) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	b.lines = append(b.lines, line)
	fmt.Fprintln(os.Stderr, time.Now().Format("15:04:05"), line)
}
