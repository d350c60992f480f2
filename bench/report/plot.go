package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
)

// plotted is what is drawn against the number of objects.
var plotted = []struct{ file, title, measure string }{
	{"heap", "Live heap of the synced copy, per object", "heap per object"},
	{"time", "Time until synced", "sync time"},
	{"memory", "Growth of the peak memory (RSS) until synced", "peak RSS growth"},
	{"cpu", "CPU time to sync, per object", "CPU per object"},
}

// PlotName is the file of a plot, and what it shows.
type PlotName struct{ File, Title string }

// PlotNames are the plots that Plots draws, race by race.
func PlotNames(races []*Race) (names []PlotName) {
	for _, d := range drawings(races) {
		names = append(names, PlotName{d.file, d.title})
	}
	return names
}

// Plots draws the races with several sizes, one file each; the name of a
// file is that of the race and the figure.
func Plots(races []*Race) map[string][]byte {
	files := map[string][]byte{}
	for _, d := range drawings(races) {
		files[d.file] = d.svg()
	}
	return files
}

// drawing is a chart and the file that it goes to.
type drawing struct {
	file string
	chart
}

func drawings(races []*Race) (drawings []drawing) {
	for _, group := range bySize(races) {
		if len(group) < 2 {
			continue
		}
		for _, p := range plotted {
			c := chart{title: fmt.Sprintf("%s (%s)", p.title, group[0].Name)}
			for _, e := range group[len(group)-1].Entries {
				line := series{name: e.Name}
				for _, r := range group {
					if values, unit := r.value(e.Name, p.measure); len(values) > 0 && Median(values) > 0 {
						line.points = append(line.points, point{float64(r.Pods), Median(values)})
						c.unit = unit
					}
				}
				if len(line.points) > 0 {
					c.lines = append(c.lines, line)
				}
			}
			if len(c.lines) > 0 {
				drawings = append(drawings, drawing{p.file + "-" + group[0].Name + ".svg", c})
			}
		}
	}
	return drawings
}

type point struct{ x, y float64 }

type series struct {
	name   string
	points []point
}

// chart has logarithmic axes: costs differ by more than a straight axis can show,
// and what grows with the number of objects is a straight line.
type chart struct {
	title string
	unit  Unit
	lines []series
}

const (
	width, height            = 760, 440
	left, right, top, bottom = 84, 190, 48, 44
	labelHeight              = 15
	plotWidth, plotHeight    = width - left - right, height - top - bottom
	gray, ink                = "#8a8f98", "#4b5563"
	fontFamily               = "system-ui, sans-serif"
	ours                     = "tarn"
)

// Colours that differ in print, on white and on black; ours are the blues and
// greens, others' the reds and browns.
var (
	ourColours    = []string{"#1f77b4", "#17becf", "#2ca02c", "#6a5acd", "#0b7a75", "#4f9d69"}
	othersColours = []string{"#d62728", "#e377c2", "#ff7f0e", "#8c564b", "#b8860b"}
)

// axis maps values to positions by their logarithm.
type axis struct{ low, high float64 }

func newAxis(values []float64) axis {
	a := axis{math.Log10(slices.Min(values)), math.Log10(slices.Max(values))}
	margin := max(0.04*(a.high-a.low), 0.02)
	return axis{a.low - margin, a.high + margin}
}

// at is where a value stands, from 0 to 1.
func (a axis) at(v float64) float64 { return (math.Log10(v) - a.low) / (a.high - a.low) }

// ticks are 1, 2 and 5 times the powers of ten of something, within the axis; only
// the powers where there are many.
func (a axis) ticks(of float64) []float64 {
	steps := []float64{1, 2, 5}
	if a.high-a.low > 3 {
		steps = steps[:1]
	}
	var ticks []float64
	for e := math.Floor(a.low - math.Log10(of)); e <= a.high-math.Log10(of); e++ {
		for _, s := range steps {
			if v := s * of * math.Pow(10, e); a.at(v) >= 0 && a.at(v) <= 1 {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

func (c chart) svg() []byte {
	var xs, ys []float64
	for _, l := range c.lines {
		for _, p := range l.points {
			xs, ys = append(xs, p.x), append(ys, p.y)
		}
	}
	x, y := newAxis(xs), newAxis(ys)
	px := func(v float64) float64 { return left + x.at(v)*plotWidth }
	py := func(v float64) float64 { return top + (1-y.at(v))*plotHeight }

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="%s" font-size="12">`+"\n", width, height, fontFamily)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="26" font-size="15" fill="%s">%s</text>`+"\n", left, ink, html.EscapeString(c.title))
	for _, v := range y.ticks(c.unit.one()) {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#e5e7eb"/><text x="%d" y="%.1f" text-anchor="end" fill="%s">%s</text>`+"\n",
			left, py(v), left+plotWidth, left-8, py(v)+4, gray, html.EscapeString(c.unit.Format(v)))
	}
	slices.Sort(xs)
	for _, v := range slices.Compact(xs) {
		fmt.Fprintf(&b, `<path d="M%.1f %dv%d" stroke="#e5e7eb"/><text x="%.1f" y="%d" text-anchor="middle" fill="%s">%s</text>`+"\n",
			px(v), top, plotHeight, px(v), top+plotHeight+18, gray, Thousands(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="%s">objects</text>`+"\n", left+plotWidth/2, height-8, gray)
	c.drawLines(&b, px, py)
	b.WriteString("</svg>\n")
	return b.Bytes()
}
