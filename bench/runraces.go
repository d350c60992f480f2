package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/bench/report"
)

// runRaces holds every chosen race with every chosen size.
func (p *parent) runRaces(ctx context.Context) {
	for _, r := range p.races {
		for _, n := range r.sizes(p.sizes) {
			held := r
			if n != 0 && len(p.sizes) > 1 && !r.largestOnly {
				held.entries = forGrowth(r.entries)
			}
			result, err := p.hold(ctx, held, n)
			if err != nil {
				p.failures = append(p.failures, err)
				fmt.Fprintln(p.progress, "failed:", err)
				continue
			}
			result.Table(p.out)
			p.file.Races = append(p.file.Races, result)
		}
	}
	report.Growth(p.out, p.file.Races)
}

// sizes are those of the chosen ones with which the race is held.
func (r race) sizes(chosen []int) []int {
	switch {
	case r.largestOnly:
		return []int{slices.Max(chosen)}
	case r.scaled || len(chosen) == 1:
		return chosen
	case slices.Contains(chosen, 0):
		return []int{0}
	default:
		return nil
	}
}

// forGrowth leaves out what one size is enough for: a second run of the same
// contender, which shows the noise, and contenders that list instead of streaming.
func forGrowth(entries []entry) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		return e.name != e.contender || len(e.made().Environment) > 0
	})
}

// rounds are fewer for large collections, in which the noise averages out by
// itself.
func (p *parent) rounds(n int) int { return min(p.count, max(1, p.count*10_000/max(n, 1))) }

// hold has the entries run in turn, round by round, against one server.
func (p *parent) hold(ctx context.Context, r race, n int) (*report.Race, error) {
	fmt.Fprintf(p.progress, "%s: preparing the server\n", r.name)
	at, info, stop, err := p.server(ctx, r, n)
	if err != nil {
		return nil, err
	}
	defer stop()
	p.file.Settings.Data = info.Origin
	held := &report.Race{Name: r.name, Pods: info.Pods, DataSize: n == 0, Wire: map[string]int{}}
	for format, size := range info.Bytes {
		held.Wire[string(format)] = size / info.Pods
		fmt.Fprintf(p.progress, "%s: %s objects (%s), %d bytes each in %s\n", r.name, report.Thousands(float64(info.Pods)), info.Origin, size/info.Pods, format)
	}
	if n == r.targetSize {
		held.Targets = r.targets
	}
	for _, e := range r.entries {
		held.Entries = append(held.Entries, report.Entry{Name: e.name, Against: e.against, Again: e.contender == e.against})
	}
	rounds := p.rounds(info.Pods)
	for round := range rounds {
		folder, err := os.MkdirTemp("", "tarn-bench-")
		if err != nil {
			return nil, err
		}
		for i, e := range r.entries {
			if p.tooLarge(r, e, info.Pods) {
				continue
			}
			t := task{Scenario: r.name, Contender: e.name, Server: at, Profiles: p.profiles, Folder: folder, Paced: r.paced}
			if at.Kubeconfig != "" {
				t.Known = &info
			}
			if result, ok := p.child(ctx, t, round, rounds, e.made().Environment...); ok {
				held.Entries[i].Rounds = append(held.Entries[i].Rounds, result)
			}
		}
		if err := os.RemoveAll(folder); err != nil {
			return nil, err
		}
	}
	return held, ctx.Err()
}

// server starts the replay server of a race, or fills the real one.
func (p *parent) server(ctx context.Context, r race, n int) (at address, info replay.Info, stop func(), err error) {
	if p.kubeconfig != "" {
		info, err = realServer(ctx, p.kubeconfig, p.data, r.pods, n)
		return address{Kubeconfig: p.kubeconfig}, info, func() {}, err
	}
	at, stop, err = startServer(ctx, replay.Config{
		Data: p.data, Kind: r.pods, Pods: n, Updates: p.updates / r.updateDivisor(), Formats: r.formats(), Gzip: p.gzip || r.production, TLS: r.production,
	})
	if err != nil {
		return at, info, nil, err
	}
	if info, err = (replay.Control{URL: at.URL}).Info(ctx); err != nil {
		stop()
	}
	return at, info, stop, err
}

// tooLarge says that an entry would need more memory than there is, going by what
// it needed for a smaller collection. The kernel would end it, or something else.
func (p *parent) tooLarge(r race, e entry, pods int) bool {
	free := memoryAvailable()
	for _, held := range p.file.Races {
		need := held.Peak(e.name) * float64(pods) / float64(held.Pods)
		if held.Name == r.name && free > 0 && held.Pods < pods && need > 0.9*float64(free) {
			fmt.Fprintf(p.progress, "%s: %s is left out: it would need %s of the %s that are free\n",
				r.name, e.name, report.Bytes.Format(need), report.Bytes.Format(float64(free)))
			return true
		}
	}
	return false
}
