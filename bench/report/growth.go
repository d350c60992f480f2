package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// flat is how much more an object may cost in the largest collection than in the
// smallest for the cost to be called flat.
const flat = 1.2

// bySize groups races by name, each group ordered by size.
func bySize(races []*Race) [][]*Race {
	groups := map[string][]*Race{}
	var names []string
	for _, r := range races {
		if groups[r.Name] == nil {
			names = append(names, r.Name)
		}
		groups[r.Name] = append(groups[r.Name], r)
	}
	var result [][]*Race
	for _, name := range names {
		slices.SortFunc(groups[name], func(a, b *Race) int { return a.Pods - b.Pods })
		result = append(result, groups[name])
	}
	return result
}

// Growth writes what an object costs in collections of different sizes, for
// races that were held with several.
func Growth(out io.Writer, races []*Race) {
	for _, group := range bySize(races) {
		if len(group) < 2 {
			continue
		}
		head := []string{"per object", "contender"}
		for _, r := range group {
			head = append(head, Thousands(float64(r.Pods)))
		}
		var lines [][]string
		for _, measure := range group[0].measures() {
			if !strings.HasSuffix(measure, " per object") {
				continue
			}
			for _, e := range group[len(group)-1].Entries {
				lines = append(lines, growthLine(group, measure, e.Name))
			}
		}
		fmt.Fprintf(out, "\n### %s, from %s to %s objects\n\n", group[0].Name, head[2], head[len(head)-1])
		writeAligned(out, append(head, "largest/smallest", ""), lines, 2, 1)
	}
}

func growthLine(group []*Race, measure, entry string) []string {
	line := []string{strings.TrimSuffix(measure, " per object"), entry}
	var medians []float64
	for _, r := range group {
		values, unit := r.value(entry, measure)
		if len(values) == 0 {
			line = append(line, "-")
			continue
		}
		medians = append(medians, Median(values))
		line = append(line, unit.Format(Median(values)))
	}
	if len(medians) < len(group) || medians[0] <= 0 {
		return append(line, "", "")
	}
	ratio := medians[len(medians)-1] / medians[0]
	verdict := "flat"
	if ratio > flat {
		verdict = "grows"
	}
	return append(line, fmt.Sprintf("%.2f", ratio), verdict)
}
