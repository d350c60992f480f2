package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// unit says how a figure is written.
type unit string

const (
	seconds   unit = "s"
	size      unit = "bytes"
	perSecond unit = "per second"
	number    unit = "number"
)

func (u unit) format(v float64) string {
	switch u {
	case seconds:
		return fmt.Sprintf("%.2f s", v)
	case size:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case perSecond:
		return thousands(v) + "/s"
	default:
		return thousands(v)
	}
}

// thousands writes a whole number with separators: 1,234,567.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// row is one line of the table: one measure, one value per contender. A
// contender that has none is absent.
type row struct {
	scenario, measure string
	unit              unit
	values            map[string]float64
}

// rowsOf makes a scenario's rows, each value the median of the rounds. The
// measures come in the order in which the first contender took them.
func rowsOf(scenario string, results map[string][]result) []row {
	var rows []row
	for _, c := range contenders {
		rounds := map[string][]float64{}
		for _, r := range results[c.name] {
			for _, m := range r {
				rounds[m.Name] = append(rounds[m.Name], m.Value)
				if !slices.ContainsFunc(rows, func(r row) bool { return r.measure == m.Name }) {
					rows = append(rows, row{scenario, m.Name, m.Unit, map[string]float64{}})
				}
			}
		}
		for _, r := range rows {
			if values := rounds[r.measure]; len(values) > 0 {
				r.values[c.name] = median(values)
			}
		}
	}
	return rows
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// printTable writes the rows as aligned Markdown, to be read here and pasted
// elsewhere.
func printTable(out io.Writer, rows []row) {
	base, ours := contenders[0].name, contenders[len(contenders)-1].name
	head := []string{"scenario", "measure"}
	rule := []string{"---", "---"}
	for _, c := range contenders {
		head, rule = append(head, c.name), append(rule, "---:")
	}
	cells := [][]string{append(head, ours+"/"+base), append(rule, "---:")}
	last := ""
	for _, r := range rows {
		line := []string{r.scenario, r.measure}
		if r.scenario == last {
			line[0] = ""
		}
		last = r.scenario
		for _, c := range contenders {
			text := "-"
			if v, ok := r.values[c.name]; ok {
				text = r.unit.format(v)
			}
			line = append(line, text)
		}
		cells = append(cells, append(line, ratio(r, ours, base)))
	}
	writeAligned(out, cells)
}

// writeAligned pads every cell to its column's width: the first two columns are
// words and stand left, the others figures and stand right.
func writeAligned(out io.Writer, cells [][]string) {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, line := range cells {
		for i, cell := range line {
			width := widths[i]
			if i < 2 {
				width = -width
			}
			fmt.Fprintf(out, "| %*s ", width, cell)
		}
		fmt.Fprintln(out, "|")
	}
}

// ratio is empty where it would say nothing: a value is missing, or one is
// within what a quiet heap wavers by.
func ratio(r row, ours, base string) string {
	a, okA := r.values[ours]
	b, okB := r.values[base]
	if !okA || !okB || b <= 0 || a < 0 || r.unit == size && b < 1<<20 {
		return "-"
	}
	return fmt.Sprintf("%.3f", a/b)
}
