package main

import (
	"fmt"
	"slices"
)

// readmeColumns are the contenders in the README's table.
var readmeColumns = []string{"client-go", "tarn kube", "tarn informers", "tarn cache"}

func (p *page) readmeRun() string {
	return fmt.Sprintf("\nOne run on %s, %s, client-go %s on the same server:\n", p.origin(), rounds(p.file.Settings.Rounds), p.file.Settings.Versions[clientGo])
}

// readmeFigures are rounded: two digits are what a reader compares.
func (p *page) readmeFigures() string {
	line := func(label, measure string, format func(float64) string) []string {
		line := []string{label}
		for _, c := range readmeColumns {
			text := "–"
			if v, _, ok := p.figure("protobuf", c, measure); ok {
				text = format(v)
			}
			line = append(line, text)
		}
		return line
	}
	microseconds := func(v float64) string { return fmt.Sprintf("%.0f µs", v*1e6) }
	return table([]string{"per pod", "client-go", "`kube`", "`informers` from a config", "`cache` over a ListWatch"},
		line("heap", heapPerObject, func(v float64) string { return fmt.Sprintf("%.1f KB", v/1000) }),
		line("heap objects", objectsPerObject, func(v float64) string { return fmt.Sprintf("%.0f", v) }),
		line("growth of the peak RSS, in all", peakMemory, func(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }),
		line("CPU to sync", cpuPerObject, microseconds),
		line("CPU per update", cpuPerUpdate, microseconds),
	)
}

func (p *page) readmeNoise() string {
	heap, ok := p.worstSpread("protobuf", readmeColumns, heapPerObject, objectsPerObject)
	rss, _ := p.worstSpread("protobuf", readmeColumns, peakMemory)
	cpu, _ := p.worstSpread("protobuf", readmeColumns, cpuPerObject, cpuPerUpdate)
	text := "This run had one round, so it does not show its noise."
	if ok {
		text = fmt.Sprintf("Between the rounds of this run heap differs by at most %.1f %%, RSS by up to %.0f %% and CPU by up to %.0f %%.", heap, rss, cpu)
	}
	if note := p.file.Settings.Note; note != "" {
		text += " " + note
	}
	return text
}

// readmeCacheCPU is the most that package cache costs in CPU, as a multiple of
// client-go.
func (p *page) readmeCacheCPU() string {
	r, ok := p.file.Race("protobuf")
	if !ok {
		return p.lacks("protobuf")
	}
	var ratios []float64
	for _, measure := range []string{cpuPerObject, cpuPerUpdate} {
		if ratio, ok := r.Ratio("tarn cache", "client-go", measure); ok {
			ratios = append(ratios, ratio)
		}
	}
	if len(ratios) == 0 {
		return p.lacks("protobuf", "tarn cache", "CPU")
	}
	return fmt.Sprintf("%.1f", slices.Max(ratios))
}
