// Program engines measures how fast sinks write to engines, side by side with a bare writer
// of the same bytes on the same server, and how far they are behind a server that changes.
//
//	go run ./engines -pods 10000 -rounds 3
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/report"
	"github.com/tarnproject/tarn/kube/wire"
)

var (
	pods   = flag.Int("pods", 10_000, "how many pods there are")
	batch  = flag.Int("batch", 4096, "how many changes a commit has")
	rounds = flag.Int("rounds", 3, "how often each is measured, in turns; the best counts")
	data   = flag.String("data", "../../shared/data/pods.pb.zst", "`file` with real pods")
	rate   = flag.Int("rate", 1000, "how many changes there are in a second when the lag is measured")
	during = flag.Duration("during", 20*time.Second, "for how long the lag is measured")
	bounds = flag.Bool("bounds", false, "fail below half of a bare COPY, 0.7 of a bare publisher, or beyond a lag of 1 s")
	docs   = flag.String("docs", "", "the `page` whose section is written; only printed if empty")
	only   = flag.String("only", "", "measure only: postgres, jetstream or lag")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	set, err := podset.Read(*data, podset.ReplicaSets, *pods)
	if err != nil {
		return err
	}
	all, err := decode(set)
	if err != nil {
		return err
	}
	var text strings.Builder
	var failed error
	fmt.Fprintf(&text, "%s; real pods, %d of them, %d changes in a commit, best of %d rounds. CPU is that of the feeder's process, which has the NATS server too, and that of the Postgres server.\n\n", report.ThisMachine(), *pods, *batch, *rounds)
	fmt.Fprint(&text, "| writer | pods/s | of the bare writer | CPU µs/pod | of the server |\n|---|---|---|---|---|\n")
	for _, engine := range []struct {
		name    string
		measure func(context.Context, []*corev1.Pod) ([]comparison, error)
		bound   float64
	}{{"postgres", measurePostgres, 0.5}, {"jetstream", measureJetStream, 0.7}} {
		if *only != "" && *only != engine.name {
			continue
		}
		compared, err := engine.measure(ctx, all)
		if err != nil {
			return err
		}
		for _, c := range compared {
			c.bound = engine.bound
			failed = errors.Join(failed, c.print(&text))
		}
	}
	if *only == "" || *only == "lag" {
		failed = errors.Join(failed, measureLags(ctx, set, &text))
	}
	fmt.Print(text.String())
	if *docs != "" {
		failed = errors.Join(failed, report.WriteSection(*docs, "engines", text.String()))
	}
	if !*bounds {
		var slow tooSlow
		if errors.As(failed, &slow) {
			fmt.Fprintln(os.Stderr, "engines:", failed)
			return nil
		}
	}
	return failed
}

// decode makes objects as a copy has them: equal parts are shared.
func decode(set *podset.Set) (all []*corev1.Pod, err error) {
	decoder, err := wire.NewDecoder(reflect.TypeFor[*corev1.Pod](), wire.Options{Pool: wire.NewPool()})
	if err != nil {
		return nil, err
	}
	for _, raw := range set.Pods {
		pod, err := decoder.Protobuf(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, pod.(*corev1.Pod))
	}
	return all, nil
}

// at is a pod at a version, which has everything else of the one before, as in a copy.
func at(p *corev1.Pod, version string) *corev1.Pod {
	next := *p
	next.ResourceVersion = version
	return &next
}

// changes are those of all pods at a version, in batches of a size.
func changes(all []*corev1.Pod, kind tarn.ChangeType, version string, size int) (batches []tarn.Batch[*corev1.Pod]) {
	var list []tarn.Change[*corev1.Pod]
	for _, p := range all {
		p = at(p, version)
		list = append(list, tarn.Change[*corev1.Pod]{Type: kind, Key: tarn.Key(p.Namespace + "/" + p.Name), Object: p, Version: tarn.Version(version), Heard: time.Now()})
	}
	for part := range slices.Chunk(list, size) {
		batches = append(batches, tarn.Batch[*corev1.Pod]{
			Changes: part, Whole: kind == tarn.Add && len(batches) == 0,
			Positions: []tarn.Position{tarn.At(tarn.Version(version))}, LastContact: time.Now(),
		})
	}
	return batches
}
