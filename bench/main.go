package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/tarnproject/tarn/bench/report"
)

func main() {
	if ran, err := runAsChild(); ran {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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

// run is the parent's side: it has the contenders run what was chosen, prints
// tables on out and progress on progress, and keeps the results.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	if o.list {
		o.describe(out)
		return nil
	}
	if o.render {
		f, err := report.Load(filepath.Join(o.docs, recorded))
		if err != nil {
			return err
		}
		return writeDocs(o.docs, f)
	}
	p := &parent{options: o, out: out, progress: progress}
	p.file.Machine = report.ThisMachine()
	p.file.Settings = report.Settings{
		Began: time.Now().Truncate(time.Second), Rounds: o.count, Updates: o.updates, Gzip: o.gzip,
		Environment: childEnvironment, Versions: peerVersions(), Note: o.note,
	}
	fmt.Fprintf(out, "Measured on %s; every contender with %v.\n", p.file.Machine, childEnvironment)
	p.runScenarios(ctx)
	p.runTrials(ctx)
	p.runRaces(ctx)
	p.file.Settings.Took = time.Since(p.file.Settings.Began).Truncate(time.Second)
	report.Verdict(out, p.file.Races)
	if ctx.Err() != nil {
		p.failures = append(p.failures, fmt.Errorf("the run did not finish: %w", context.Cause(ctx)))
	}
	p.save()
	return errors.Join(p.failures...)
}

// save writes the results where the options say. Those of a run that failed in part
// or was interrupted are kept too, but not shown in the documents.
func (p *parent) save() {
	if p.options.out != "" {
		p.failures = append(p.failures, p.file.Save(p.options.out))
	}
	if p.docs == "" {
		return
	}
	err := errors.Join(p.failures...)
	if err == nil {
		err = writeDocs(p.docs, &p.file)
	}
	if err == nil {
		return
	}
	p.failures = []error{fmt.Errorf("the documents stay as they are; the results of this run are in the folder %s: %w", unfinished, err), p.file.Save(unfinished)}
}

// The modules of the peers.
const (
	clientGo          = "k8s.io/client-go"
	controllerRuntime = "sigs.k8s.io/controller-runtime"
)

// peerVersions are those that this program was built with.
func peerVersions() map[string]string {
	versions := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	for _, d := range info.Deps {
		if d.Path == clientGo || d.Path == controllerRuntime {
			versions[d.Path] = d.Version
		}
	}
	return versions
}

// parent runs children and collects their measurements. A contender that fails
// leaves a gap; the figures of the others are still printed.
type parent struct {
	options
	out, progress io.Writer
	file          report.File
	failures      []error
}

// child runs one contender.
func (p *parent) child(ctx context.Context, t task, round, rounds int, environment ...string) (report.Result, bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	fmt.Fprintf(p.progress, "%s, round %d of %d: %s\n", t.Scenario, round+1, rounds, t.Contender)
	r, err := runChild(ctx, t, environment...)
	if err != nil {
		p.failures = append(p.failures, err)
		fmt.Fprintln(p.progress, "failed:", err)
	}
	return r, err == nil
}

// runScenarios runs the contenders in turn, so that a machine that slows down
// over time slows both.
func (p *parent) runScenarios(ctx context.Context) {
	names := make([]string, len(contenders))
	for i, c := range contenders {
		names[i] = c.name
	}
	for _, s := range p.scenarios {
		results := map[string][]report.Result{}
		for round := range p.count {
			for _, name := range names {
				if s.run[name] == nil {
					continue // the scenario is not held with this contender
				}
				if r, ok := p.child(ctx, task{Scenario: s.name, Contender: name}, round, p.count); ok {
					results[name] = append(results[name], r)
				}
			}
		}
		p.file.Scenarios = append(p.file.Scenarios, report.RowsOf(s.name, names, results)...)
	}
	if len(p.scenarios) > 0 {
		fmt.Fprintln(p.out)
		report.SideBySide(p.out, names, p.file.Scenarios)
	}
}
