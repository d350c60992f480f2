package report

import (
	"fmt"
	"io"
	"slices"
)

// Row is one line of a table that has a column for each contender: one measure,
// one value each. A contender that has none is absent.
type Row struct {
	Scenario, Measure string
	Unit              Unit
	Values            map[string]float64
}

// RowsOf makes a scenario's rows, each value the median of the rounds. The
// measures come in the order in which the first contender took them.
func RowsOf(scenario string, contenders []string, results map[string][]Result) []Row {
	var rows []Row
	for _, c := range contenders {
		rounds := map[string][]float64{}
		for _, r := range results[c] {
			for _, m := range r {
				rounds[m.Name] = append(rounds[m.Name], m.Value)
				if !slices.ContainsFunc(rows, func(r Row) bool { return r.Measure == m.Name }) {
					rows = append(rows, Row{scenario, m.Name, m.Unit, map[string]float64{}})
				}
			}
		}
		for _, r := range rows {
			if values := rounds[r.Measure]; len(values) > 0 {
				r.Values[c] = Median(values)
			}
		}
	}
	return rows
}

// SideBySide writes the rows, with the ratio of the last contender's value to the
// first one's.
func SideBySide(out io.Writer, contenders []string, rows []Row) {
	base, ours := contenders[0], contenders[len(contenders)-1]
	head := append([]string{"scenario", "measure"}, contenders...)
	var lines [][]string
	for _, r := range rows {
		line := []string{r.Scenario, r.Measure}
		for _, c := range contenders {
			text := "-"
			if v, ok := r.Values[c]; ok {
				text = r.Unit.Format(v)
			}
			line = append(line, text)
		}
		lines = append(lines, append(line, ratio(r, ours, base)))
	}
	writeAligned(out, append(head, ours+"/"+base), lines, 2, 1)
}

// ratio is empty where it would say nothing: a value is missing, or one is
// within what a quiet heap wavers by.
func ratio(r Row, ours, base string) string {
	a, okA := r.Values[ours]
	b, okB := r.Values[base]
	if !okA || !okB || b <= 0 || a < 0 || r.Unit == Bytes && b < 1<<20 {
		return "-"
	}
	return fmt.Sprintf("%.3f", a/b)
}
