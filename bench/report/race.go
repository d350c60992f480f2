package report

import (
	"fmt"
	"io"
	"slices"
)

// Race is what several contenders measured on the same collection.
type Race struct {
	Name string
	Pods int
	// DataSize says that Pods is the number of objects that the data has. The same
	// race with other numbers shows how costs grow.
	DataSize bool `json:",omitempty"`
	// Wire is the mean size of an object on the wire, in bytes, by format.
	Wire    map[string]int `json:",omitempty"`
	Entries []Entry
	// Targets are judged only if they are given: they hold for one size.
	Targets []Target
}

// Entry is one contender in a race.
type Entry struct {
	Name string
	// Against is the entry that it is compared with, empty for none.
	Against string
	// Again says that this is the program that it is compared with, once more, so
	// that the noise shows.
	Again  bool
	Rounds []Result
}

// Target is what the ratio of two entries' figures must not exceed, or, if Against
// is empty, the entry's own figure.
type Target struct {
	Entry, Against, Measure string
	AtMost                  float64
}

// value is an entry's figure in each of its rounds.
func (r *Race) value(entry, measure string) (values []float64, unit Unit) {
	for _, e := range r.Entries {
		if e.Name != entry {
			continue
		}
		for _, round := range e.Rounds {
			for _, m := range round {
				if m.Name == measure {
					values, unit = append(values, m.Value), m.Unit
				}
			}
		}
	}
	return values, unit
}

// Median is an entry's figure, with its unit.
func (r *Race) Median(entry, measure string) (median float64, unit Unit, ok bool) {
	values, unit := r.value(entry, measure)
	if len(values) == 0 {
		return 0, "", false
	}
	return Median(values), unit, true
}

// Ratio is the figure of one entry divided by that of another, as in
// [Comparison].
func (r *Race) Ratio(entry, against, measure string) (ratio float64, ok bool) {
	c, ok := r.compare(measure, entry, against)
	return c.Ratio, ok && c.Ratio > 0
}

// Spread is how far an entry's rounds lie apart, as in [Comparison]. It is not
// known of fewer than two rounds.
func (r *Race) Spread(entry, measure string) (spread float64, ok bool) {
	values, _ := r.value(entry, measure)
	c, ok := r.compare(measure, entry, "")
	return c.Spread, ok && len(values) > 1
}

// Peak is the growth of memory that an entry needed, 0 if that is not known.
func (r *Race) Peak(entry string) float64 {
	values, _ := r.value(entry, "peak RSS growth")
	if len(values) == 0 {
		return 0
	}
	return Median(values)
}

// measures are the names of all figures, in order.
func (r *Race) measures() []string {
	var names []string
	for _, e := range r.Entries {
		for _, round := range e.Rounds {
			for _, m := range round {
				if !slices.Contains(names, m.Name) {
					names = append(names, m.Name)
				}
			}
		}
	}
	return names
}

// Comparison is a line of a race's table.
type Comparison struct {
	Measure, Entry string
	Median         float64
	Unit           Unit
	// Spread is the distance of the largest from the smallest round, as a part
	// of the median.
	Spread  float64
	Against string
	// Ratio is the median of the ratios of the rounds; 0 without one. In a round the
	// contenders run one after the other, and the reference counts with the mean of
	// its runs.
	//
	// Why not the ratio of the medians: a machine that others use is slow for minutes
	// and quick for minutes. Within a round that hits all alike.
	Ratio float64
	// AtMost is 0 where there is no target.
	AtMost float64
}

// Reached reports whether the figure is within its target. Without a target it is.
func (c Comparison) Reached() bool { return c.AtMost == 0 || c.measured() && c.judged() <= c.AtMost }

// judged is the figure that a target is about.
func (c Comparison) judged() float64 {
	if c.Against == "" {
		return c.Median
	}
	return c.Ratio
}

func (c Comparison) measured() bool { return c.Against == "" || c.Ratio > 0 }

// limit writes the target.
func (c Comparison) limit() string {
	if c.Against == "" {
		return c.Unit.Format(c.AtMost)
	}
	return fmt.Sprintf("%.3f", c.AtMost)
}

// Compare makes the lines: for each measure each entry against its own, then
// against any other that a target names.
func (r *Race) Compare() []Comparison {
	var lines []Comparison
	for _, measure := range r.measures() {
		for _, e := range r.Entries {
			against := []string{e.Against}
			for _, t := range r.Targets {
				if t.Entry == e.Name && t.Measure == measure && !slices.Contains(against, t.Against) {
					against = append(against, t.Against)
				}
			}
			for _, other := range against {
				if c, ok := r.compare(measure, e.Name, other); ok {
					lines = append(lines, c)
				}
			}
		}
	}
	return lines
}

func (r *Race) compare(measure, entry, against string) (Comparison, bool) {
	values, unit := r.value(entry, measure)
	if len(values) == 0 {
		return Comparison{}, false
	}
	c := Comparison{Measure: measure, Entry: entry, Median: Median(values), Unit: unit, Against: against}
	if c.Median > 0 {
		c.Spread = (slices.Max(values) - slices.Min(values)) / c.Median
	}
	// A ratio to next to nothing says nothing.
	if others := r.others(measure, entry, against); len(others) > 0 && slices.Min(others) > 0 && (unit != Fraction || Median(others) >= 0.05) {
		c.Ratio = ratioOfRounds(values, others)
	}
	for _, t := range r.Targets {
		if t.Entry == entry && t.Against == against && t.Measure == measure {
			c.AtMost = t.AtMost
		}
	}
	return c, true
}

// others are the figures that an entry's are compared with, one for each round:
// the mean of all runs of that program, but for the entry's own.
func (r *Race) others(measure, entry, against string) []float64 {
	sums, _ := r.value(against, measure)
	runs := 1.
	for _, e := range r.Entries {
		if !e.Again || e.Against != against || e.Name == entry {
			continue
		}
		if again, _ := r.value(e.Name, measure); len(again) == len(sums) {
			runs++
			for i := range sums {
				sums[i] += again[i]
			}
		}
	}
	for i := range sums {
		sums[i] /= runs
	}
	return sums
}

// ratioOfRounds falls back to the ratio of the medians if a round lacks a figure.
func ratioOfRounds(values, others []float64) float64 {
	if len(values) != len(others) {
		return Median(values) / Median(others)
	}
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = values[i] / others[i]
	}
	return Median(ratios)
}

// Table writes the race with one line for each figure of each entry.
func (r *Race) Table(out io.Writer) {
	fmt.Fprintf(out, "\n### %s, %s objects\n\n", r.Name, Thousands(float64(r.Pods)))
	var lines [][]string
	for _, c := range r.Compare() {
		line := []string{c.Measure, c.Entry, c.Against, c.Unit.Format(c.Median), fmt.Sprintf("%.0f %%", 100*c.Spread), "", "", ""}
		if c.Ratio > 0 {
			line[5] = fmt.Sprintf("%.3f", c.Ratio)
		}
		if c.AtMost > 0 {
			line[6], line[7] = "≤ "+c.limit(), mark(c)
		}
		lines = append(lines, line)
	}
	writeAligned(out, []string{"measure", "contender", "against", "median", "spread", "ratio", "target", ""}, lines, 3, 1)
}

func mark(c Comparison) string {
	switch {
	case !c.measured():
		return "not measured"
	case c.Reached():
		return "ok"
	default:
		return "MISSED"
	}
}

// complaint says what a missed target is, and what it should be.
func (c Comparison) complaint() string {
	if c.Against == "" {
		return fmt.Sprintf("%s: %s has %s, should have at most %s", c.Measure, c.Entry, c.Unit.Format(c.Median), c.limit())
	}
	return fmt.Sprintf("%s: %s is %.3f of %s, should be at most %s", c.Measure, c.Entry, c.Ratio, c.Against, c.limit())
}

// Verdict writes how many targets of these races are reached, and which are not.
func Verdict(out io.Writer, races []*Race) {
	reached, total := 0, 0
	var missed []string
	for _, r := range races {
		for _, c := range r.Compare() {
			if c.AtMost == 0 {
				continue
			}
			total++
			if c.Reached() {
				reached++
				continue
			}
			missed = append(missed, r.Name+", "+c.complaint())
		}
	}
	if total == 0 {
		return
	}
	fmt.Fprintf(out, "\n%d of %d targets reached.\n", reached, total)
	for _, m := range missed {
		fmt.Fprintln(out, "- missed:", m)
	}
}
