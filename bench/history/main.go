// Program history measures what a history on disk costs, and how fast it answers, with
// several numbers of past states: bytes for each status update, CPU and memory with and
// without it, questions about the past, and the size of a directory against its bound.
//
//	go run ./history -states 100000,1000000,8600000 -data pods.pb.zst
//
// A directory of a million states takes some minutes; with -dir it is kept, and used by the
// next run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/report"
)

var (
	pods    = flag.Int("pods", 10_000, "how many pods there are")
	states  = flag.String("states", "100000,1000000,8600000", "the numbers of past states to measure with")
	group   = flag.Int("group", 100_000, "how many updates a commit has while a directory is built")
	written = flag.Int("written", 60_000, "how many updates are written to measure CPU, in rounds of five commits of 1,000; the median counts")
	rounds  = flag.Int("rounds", 5, "how often each question is asked; the median counts")
	bound   = flag.Int64("bound", 192, "the bound of the directory that is bounded, in MiB; 0 leaves it out")
	data    = flag.String("data", "../../shared/data/pods.pb.zst", "`file` with real pods")
	dir     = flag.String("dir", "", "where the directories are made and kept; a temporary one if empty")
	docs    = flag.String("docs", "", "the page whose section is written; only printed if empty")
	profile = flag.String("profile", "", "`prefix` of the files that CPU profiles are written to: .questions, and .writes with the label history")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	folder := *dir
	if folder == "" {
		made, err := os.MkdirTemp("", "history")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		folder = made
	}
	of, err := origin(ctx)
	if err != nil {
		return err
	}
	set, err := podset.Read(*data, podset.ReplicaSets, *pods)
	if err != nil {
		return err
	}
	l, err := newLoad(set)
	if err != nil {
		return err
	}
	r := results{set: set}
	from := ""
	for text := range strings.SplitSeq(*states, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-states: %w", err)
		}
		path := filepath.Join(folder, text)
		if err := build(ctx, path, from, of, l, n); err != nil {
			return err
		}
		c := &column{states: l.made}
		r.columns = append(r.columns, c)
		if err := profiled(".questions", func() error { return c.ask(ctx, path, l) }); err != nil {
			return err
		}
		write := func() error { return c.write(ctx, path, filepath.Join(folder, "without"), of, l) }
		if err := profiled(".writes", write); err != nil {
			return err
		}
		from = path
	}
	if *bound > 0 {
		if err := r.fill(ctx, filepath.Join(folder, "bounded"), of, set); err != nil {
			return err
		}
	}
	text := r.text()
	fmt.Print(text)
	if *docs == "" {
		return nil
	}
	return report.WriteSection(*docs, "history", text)
}

// profiled calls a function with a profile, if one is wanted.
func profiled(suffix string, call func() error) error {
	if *profile == "" {
		return call()
	}
	file, err := os.Create(*profile + suffix)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return call()
}
