// Program engines measures how fast sinks write to engines, side by side with a bare writer
// of the same bytes on the same server.
//
//	go run ./engines -pods 10000 -rounds 3
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/bench/podset"
)

var (
	pods   = flag.Int("pods", 10_000, "how many pods there are")
	batch  = flag.Int("batch", 4096, "how many changes a commit has")
	rounds = flag.Int("rounds", 3, "how often each is measured, in turns; the best counts")
	data   = flag.String("data", "../../shared/data/pods.pb.zst", "`file` with real pods")
	bound  = flag.Float64("bound", 0, "fail if a sink is slower than this part of the bare writer")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	source, err := podset.Open(*data)
	if err != nil {
		return err
	}
	set, err := source.Make(podset.ReplicaSets, *pods)
	if err != nil {
		return err
	}
	var all []*corev1.Pod
	for _, raw := range set.Pods {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(raw); err != nil {
			return err
		}
		all = append(all, pod)
	}
	return measurePostgres(ctx, all)
}

// changes are those of all pods, in the batches of a sink, at a version.
func changes(all []*corev1.Pod, kind tarn.ChangeType, version string) (batches []tarn.Batch[*corev1.Pod]) {
	var list []tarn.Change[*corev1.Pod]
	for _, p := range all {
		p = p.DeepCopy()
		p.ResourceVersion = version
		list = append(list, tarn.Change[*corev1.Pod]{Type: kind, Key: tarn.Key(p.Namespace + "/" + p.Name), Object: p, Version: tarn.Version(version), Heard: time.Now()})
	}
	for part := range slices.Chunk(list, *batch) {
		batches = append(batches, tarn.Batch[*corev1.Pod]{
			Changes: part, Whole: kind == tarn.Add && len(batches) == 0,
			Positions: []tarn.Position{tarn.At(tarn.Version(version))}, LastContact: time.Now(),
		})
	}
	return batches
}

// speed is the best of several rounds, in pods per second.
type speed struct {
	name string
	best float64
}

func (s *speed) add(n int, took time.Duration) { s.best = max(s.best, float64(n)/took.Seconds()) }

// compare prints how fast sinks are beside the bare writer.
func compare(bare speed, sinks ...speed) (err error) {
	fmt.Printf("%-40s %8.0f pods/s\n", bare.name, bare.best)
	for _, s := range sinks {
		part := s.best / bare.best
		fmt.Printf("%-40s %8.0f pods/s (%.2f ×)\n", s.name, s.best, part)
		if part < *bound {
			err = fmt.Errorf("%s has %.2f of the bare writer, less than %.2f", s.name, part, *bound)
		}
	}
	return err
}
