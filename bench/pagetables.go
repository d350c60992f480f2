package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/bench/report"
)

// The columns of tables, by the name of the contender.
var (
	podColumns   = []string{"client-go", "tarn cache", "tarn informers", "tarn kube", "tarn ctrlcache"}
	podHead      = []string{"per pod", "client-go", "Tarn `cache`, over client-go's ListWatch", "Tarn `informers`, from a config", "Tarn `kube`", "Tarn `ctrlcache`"}
	scenarioHead = []string{"client-go", "Tarn `cache`, not sharing", "Tarn `cache`"}
	storeColumns = []string{theirStore, ourDropIn, ourStore}
	storeHead    = []string{"", "client-go", "Tarn `cache`", "Tarn `memory`"}
)

func (p *page) noise() string {
	memory, ok := p.worstSpread("protobuf", podColumns, heapPerObject, objectsPerObject, allocsPerObject, allocsPerUpdate)
	cpu, _ := p.worstSpread("protobuf", podColumns, cpuPerObject, cpuPerUpdate)
	if !ok {
		return "\nThere was one round, so this run does not show how much figures differ between rounds.\n"
	}
	return fmt.Sprintf("\nBetween the rounds of the first table heap and allocations differ by at most %.1f %%, CPU by up to %.0f %%. A ratio (×) is to client-go; it is the median of the ratios of the rounds, because in each round all contenders ran within a minute or two.\n", memory, cpu)
}

func (p *page) podsOrigin() string {
	size := ""
	if r, ok := p.file.Race("protobuf"); ok && r.Wire != nil {
		size = fmt.Sprintf(", %.1f KB each on the wire", float64(r.Wire[string(replay.Protobuf)])/1000)
	}
	return fmt.Sprintf("\n%s%s, from an API server on loopback. They stream as initial events, except in the row \"by list\". The README's figures are from this table.\n", p.origin(), size)
}

func (p *page) pods() string {
	const race, base = "protobuf", "client-go"
	plain := func(label, measure string) []string { return row(label, p.cells(race, podColumns, measure, "")) }
	ratio := func(label, measure string) []string { return row(label, p.cells(race, podColumns, measure, base)) }
	return table(podHead,
		ratio("heap", heapPerObject),
		plain("heap objects", objectsPerObject),
		plain(fmt.Sprintf("heap after %s updates", report.Thousands(float64(p.file.Settings.Updates))), heapUpdated),
		ratio("CPU to sync", cpuPerObject),
		row("CPU to sync, by list", []string{p.cell(race, "client-go list", cpuPerObject), p.cell(race, "tarn cache list", cpuPerObject), "", p.cell(race, "tarn kube list", cpuPerObject), ""}),
		plain("allocations to sync", allocsPerObject),
		ratio("CPU per update", cpuPerUpdate),
		plain("allocations per update", allocsPerUpdate),
		ratio("growth of the peak RSS in all", peakMemory),
		ratio("a forced garbage collection in all", gcTime),
	)
}

// production is the table of pods by TLS and HTTP/2.
func (p *page) production() string {
	const race = "production"
	columns := []string{"client-go", "tarn informers", "tarn kube"}
	line := func(label, measure string) []string {
		return row(label, slices.Concat(p.cells(race, columns, measure, "client-go"), p.cells(race, []string{"controller-runtime", "tarn ctrlcache"}, measure, "controller-runtime")))
	}
	byList := p.cells(race, []string{"client-go list", "tarn kube list"}, cpuPerObject, "client-go list")
	return table([]string{"per pod", "client-go", "Tarn `informers`", "Tarn `kube`", "controller-runtime", "Tarn `ctrlcache`"},
		line("heap", heapPerObject),
		line("CPU to sync", cpuPerObject),
		row("CPU to sync, by compressed list", []string{byList[0], "", byList[1], "", ""}),
		line("CPU per update", cpuPerUpdate),
		line("growth of the peak RSS in all", peakMemory))
}

// custom joins the races of custom resources: with a Go type and without.
func (p *page) custom() string {
	line := func(label, measure string) []string {
		return row(label, slices.Concat(
			p.cells("typed", []string{"client-go typed", "tarn typed"}, measure, "client-go typed"),
			p.cells("dynamic", []string{"client-go dynamic", "tarn dynamicinformer", "tarn dynamic"}, measure, "client-go dynamic"),
		))
	}
	return table([]string{"per object", "client-go, Go type", "Tarn `kube`, Go type", "client-go, unstructured", "Tarn `dynamicinformer`, unstructured", "Tarn `kube`, unstructured"},
		line("heap", heapPerObject), line("heap objects", objectsPerObject), line("CPU to sync", cpuPerObject),
		line("allocations to sync", allocsPerObject), line("CPU per update", cpuPerUpdate), line("growth of the peak RSS in all", peakMemory))
}

func (p *page) distinct() string {
	columns := []string{"client-go", "tarn cache", "tarn kube"}
	line := func(label, measure string) []string {
		return row(label, p.cells("distinct", columns, measure, "client-go"))
	}
	return table([]string{"per pod", "client-go", "Tarn `cache`", "Tarn `kube`"},
		line("heap", heapPerObject), line("heap objects", objectsPerObject), line("CPU to sync", cpuPerObject), line("CPU per update", cpuPerUpdate))
}

// growth shows what one object costs in collections of several sizes. A contender
// that was left out of a size, because it needs more memory than there is, has a
// gap.
func (p *page) growth() string {
	var rows [][]string
	var head []string
	for _, c := range []struct{ race, entry, label string }{
		{"protobuf", "client-go", "client-go, protobuf"}, {"protobuf", "tarn kube", "Tarn `kube`, protobuf"},
		{"typed", "client-go typed", "client-go, JSON with a Go type"}, {"typed", "tarn typed", "Tarn `kube`, JSON with a Go type"},
		{"dynamic", "client-go dynamic", "client-go, unstructured"}, {"dynamic", "tarn dynamic", "Tarn `kube`, unstructured"},
	} {
		line, sizes := []string{c.label}, []string{"heap and CPU to sync, per object"}
		for _, r := range p.file.Sizes(c.race) {
			heap, unit, ok := r.Median(c.entry, heapPerObject)
			cpu, cpuUnit, _ := r.Median(c.entry, cpuPerObject)
			text := "–"
			if ok {
				text = unit.Format(heap) + ", " + cpuUnit.Format(cpu)
			}
			line, sizes = append(line, text), append(sizes, report.Thousands(float64(r.Pods)))
		}
		if len(sizes) < 3 || len(head) > 0 && !slices.Equal(head, sizes) {
			p.lacks(c.race, "the same two sizes or more as the others")
		}
		head, rows = sizes, append(rows, line)
	}
	return table(head, rows...)
}

// plots shows those that Save draws.
func (p *page) plots() string {
	names := report.PlotNames(p.file.Races)
	if len(names) == 0 {
		p.lacks("plots: two sizes or more")
	}
	var b strings.Builder
	b.WriteByte('\n')
	for i := 0; i < len(names); i += 2 {
		b.WriteString("|")
		for _, n := range names[i:min(i+2, len(names))] {
			fmt.Fprintf(&b, " ![%s](bench/%s) |", n.Title, n.File)
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString("|---|---|\n")
		}
	}
	return b.String()
}

func (p *page) handlers() string {
	line := func(label, scenario, measure string) []string { return row(label, p.scenario(scenario, measure)) }
	return table(append([]string{""}, scenarioHead...),
		line("200,000 updates of 1,000 pods to 1 handler: events", "fanout-1", "events"),
		line("… to 10 handlers: events", "fanout-10", "events"),
		line("… handler calls", "fanout-10", "handler calls"),
		line("… handler calls per second", "fanout-10", "handler calls per second"),
		line("… to 100 handlers: events", "fanout-100", "events"),
		line("… handler calls", "fanout-100", "handler calls"),
		line("… handler calls per second", "fanout-100", "handler calls per second"),
		line("one stalled handler, 300,000 updates of 1,000 pods: growth of the heap", "stalled", "heap growth"),
	)
}

func (p *page) relists() string {
	line := func(label, scenario, measure string) []string { return row(label, p.scenario(scenario, measure)) }
	return table(append([]string{"20,000 unchanged pods"}, scenarioHead...),
		line("live heap before", "relist", "steady heap"),
		line("… growth at most, by stream", "relist", "peak live heap over start"),
		line("… growth at most, by paged list", "relist-paged", "peak live heap over start"),
		line("CPU, by stream", "relist", "cpu time"),
		line("CPU, by paged list", "relist-paged", "cpu time"),
	)
}

func (p *page) store() string {
	cells := func(race, measure string) []string { return p.cells(race, storeColumns, measure, "") }
	perSecond := func(race, measure string) []string {
		var texts []string
		for _, e := range storeColumns {
			text := "–"
			if v, _, ok := p.figure(race, e, measure); ok && v > 0 {
				text = report.PerSecond.Format(1 / v)
			}
			texts = append(texts, text)
		}
		return texts
	}
	return table(storeHead,
		row("Update of one of 10,000 pods, alone → beside ten goroutines that list", pair(cells("store-update-10k", pacedAlone), cells("store-update-10k", pacedMedian))),
		row("… of 100,000", pair(cells("store-update-100k", pacedAlone), cells("store-update-100k", pacedMedian))),
		row("writes to 100,000 pods without pause, alone → beside ten that list", pair(perSecond("store-update-100k", writeAlone), perSecond("store-update-100k", writeBeside))),
		row("reading all of 100,000, per pod", cells("store-read", eachTime)),
		row("… allocated, per pod", cells("store-read", eachGarbage)),
		row("Get, alone → beside a writer", pair(cells("store-read", getAlone), cells("store-read", getBeside))),
		row("1,000 pods by an index", cells("store-read", indexTime)),
		row("Replace of 200,000, with three indexes", cells("store-replace", replaceFull)),
		row("… the slowest Get meanwhile, of three runs", cells("store-replace", slowestGet)),
		row("… in the quietest of the three", cells("store-replace", calmestGet)),
		row("the store's own heap with two indexes, per pod", cells("store-heap", storeHeap)),
		row("a further index, per pod", cells("store-heap", entryHeap)),
	)
}

func (p *page) disk() string {
	r, ok := p.file.Race("disk")
	if !ok {
		return p.lacks("disk")
	}
	const base = "client-go"
	first := []string{"tarn disk first", "tarn disk only first"}
	warm := []string{"tarn disk", "tarn disk only"}
	line := func(label, measure string) []string {
		return row(label, p.cells("disk", append([]string{base, "tarn kube"}, warm...), measure, base))
	}
	begin := func(label, measure string) []string {
		return row(label, append([]string{"", ""}, p.cells("disk", first, measure, "")...))
	}
	return table([]string{report.Thousands(float64(r.Pods)) + " pods", "client-go, in memory", "Tarn `kube`, in memory", "`kube` with a disk behind the memory", "`kube` with the disk only"},
		begin("first start, without a file: time until synced", syncTime),
		begin("size of the files / JSON of the objects", diskSize),
		line("restart: time until synced", syncTime),
		line("CPU to sync, per pod", cpuPerObject),
		line("CPU per update, at 1,000 updates a second", cpuPerUpdate),
		line("heap per pod", heapPerObject),
		line("growth of the peak RSS in all", peakMemory),
	)
}
