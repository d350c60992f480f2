package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
)

func main() {
	if ran, err := runAsChild(); ran {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func exit(err error) {
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run is the parent's side: it has every contender run every chosen scenario
// and prints the table on out, progress on progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	pattern := flags.String("run", "", "run only the scenarios whose name matches this `regexp`")
	count := flags.Int("count", 1, "run each scenario `n` times and print the medians")
	list := flags.Bool("list", false, "say what each scenario does, and run none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	match, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	chosen := scenariosMatching(match)
	if len(chosen) == 0 {
		return fmt.Errorf("no scenario matches %q; -list shows the names", *pattern)
	}
	if *list {
		for _, s := range chosen {
			fmt.Fprintf(out, "%s\n    %s\n", s.name, s.doc)
		}
		return nil
	}
	return compare(ctx, chosen, max(1, *count), out, progress)
}

// compare runs the contenders in turn, so that a machine that slows down over
// time slows both. A contender that fails leaves its column empty; the others'
// figures are printed all the same.
func compare(ctx context.Context, chosen []scenario, rounds int, out, progress io.Writer) error {
	var rows []row
	var failures []error
	for _, s := range chosen {
		results := map[string][]result{}
		for round := range rounds {
			for _, contender := range contenders {
				fmt.Fprintf(progress, "%s, round %d of %d: %s\n", s.name, round+1, rounds, contender.name)
				r, err := runChild(ctx, s.name, contender.name)
				if err != nil {
					failures = append(failures, err)
					continue
				}
				results[contender.name] = append(results[contender.name], r)
			}
		}
		rows = append(rows, rowsOf(s.name, results)...)
	}
	printTable(out, rows)
	return errors.Join(failures...)
}
