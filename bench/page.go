package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/bench/report"
)

// page makes the generated parts of the documents from the results of one run.
//
// A part is made of cells, and each cell names race, contender and measure. What
// a run lacks is noted, so that a document never mixes two runs and never shows a
// gap by accident.
type page struct {
	file    *report.File
	missing []string
}

func newPage(f *report.File) *page { return &page{file: f} }

// parts returns every part by its name, and what the run lacks for them.
func (p *page) parts() (parts map[string]string, missing []string) {
	parts = map[string]string{
		"run":             p.run(),
		"noise":           p.noise(),
		"pods-origin":     p.podsOrigin(),
		"pods":            p.pods(),
		"production":      p.production(),
		"custom":          p.custom(),
		"distinct":        p.distinct(),
		"growth":          p.growth(),
		"plots":           p.plots(),
		"handlers":        p.handlers(),
		"relists":         p.relists(),
		"store":           p.store(),
		"disk":            p.disk(),
		"readme-run":      p.readmeRun(),
		"readme-figures":  p.readmeFigures(),
		"readme-noise":    p.readmeNoise(),
		"readme-cpu-more": p.readmeCacheCPU(),
	}
	return parts, p.missing
}

// lacks notes what was not measured, and returns what stands for it.
func (p *page) lacks(what ...string) string {
	if note := strings.Join(what, ", "); !slices.Contains(p.missing, note) {
		p.missing = append(p.missing, note)
	}
	return "–"
}

// figure is a contender's median in the race with the data's own size.
func (p *page) figure(race, entry, measure string) (float64, report.Unit, bool) {
	if r, ok := p.file.Race(race); ok {
		if v, unit, ok := r.Median(entry, measure); ok {
			return v, unit, true
		}
	}
	p.lacks(race, entry, measure)
	return 0, "", false
}

// cell is a figure as text.
func (p *page) cell(race, entry, measure string) string {
	v, unit, ok := p.figure(race, entry, measure)
	if !ok {
		return "–"
	}
	return unit.Format(v)
}

// cells are a measure of several contenders. If there is a base, each but the base
// itself has its ratio to the base beside it.
func (p *page) cells(race string, entries []string, measure, base string) []string {
	var cells []string
	for _, e := range entries {
		text := p.cell(race, e, measure)
		if r, ok := p.file.Race(race); ok && base != "" && e != base {
			if ratio, ok := r.Ratio(e, base, measure); ok {
				text += fmt.Sprintf(" (%.2f ×)", ratio)
			}
		}
		cells = append(cells, text)
	}
	return cells
}

// scenario is the row of a scenario, with a cell for each contender.
func (p *page) scenario(name, measure string) (cells []string) {
	row, _ := p.file.Scenario(name, measure)
	for _, c := range contenders {
		text := "–"
		if v, ok := row.Values[c.name]; ok {
			text = row.Unit.Format(v)
		} else {
			p.lacks(name, c.name, measure)
		}
		cells = append(cells, text)
	}
	return cells
}

// pair joins two figures of a store. The second one was measured while others used the
// store.
func pair(alone, beside []string) []string {
	joined := make([]string, len(alone))
	for i := range alone {
		joined[i] = alone[i] + " → " + beside[i]
	}
	return joined
}

// table writes a part that is a table: a column of labels, then figures.
func table(head []string, rows ...[]string) string {
	var b strings.Builder
	b.WriteByte('\n')
	report.Markdown(&b, head, rows)
	return b.String()
}

func row(label string, cells []string) []string { return append([]string{label}, cells...) }

// run says what was measured, when and on what.
func (p *page) run() string {
	s, m := p.file.Settings, p.file.Machine
	few := ""
	if s.Rounds > 1 {
		few = ", and one with more than 10,000 objects"
	}
	took := ""
	if s.Took > 0 {
		took = fmt.Sprintf("took %.0f minutes and ", s.Took.Minutes())
	}
	text := fmt.Sprintf("\nAll figures are from one run of `make bench` on %s: %s, %d cores, %s, %s. It %shad %s%s. The peers are client-go %s and controller-runtime %s.\n",
		s.Began.Format("2 January 2006"), m.CPU, m.Cores, m.MemorySize(), m.Go, took, rounds(s.Rounds), few, s.Versions[clientGo], s.Versions[controllerRuntime])
	if s.Note != "" {
		text += "\n" + s.Note + "\n"
	}
	return text
}

// rounds writes their number.
func rounds(n int) string {
	switch n {
	case 1:
		return "one round"
	case 2:
		return "two interleaved rounds"
	case 3:
		return "three interleaved rounds"
	default:
		return fmt.Sprintf("%d interleaved rounds", n)
	}
}

// origin says which pods were copied.
func (p *page) origin() string {
	r, ok := p.file.Race("protobuf")
	if !ok {
		return p.lacks("protobuf")
	}
	kind := "made-up"
	if filepath.Ext(p.file.Settings.Data) == ".zst" {
		kind = "real"
	}
	return fmt.Sprintf("%s %s pods", report.Thousands(float64(r.Pods)), kind)
}

// worstSpread is the largest distance between rounds of any of these figures, in
// percent of the median; ok is false if there was but one round.
func (p *page) worstSpread(race string, entries []string, measures ...string) (percent float64, ok bool) {
	r, found := p.file.Race(race)
	if !found {
		return 0, false
	}
	for _, e := range entries {
		for _, m := range measures {
			if spread, known := r.Spread(e, m); known {
				percent, ok = max(percent, 100*spread), true
			}
		}
	}
	return percent, ok
}
