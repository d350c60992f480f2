package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Place identifies a fault within a day. It is the same in every run of one seed,
// as long as the requests are the same.
type Place struct {
	// Stream is the name of the wrapper, Request the number of the request,
	// stream or connection in it, from 1.
	Stream  string
	Request int
	Kind    Kind
	// Nth counts the faults of this kind in this request, from 1.
	Nth int
}

// Fault is one that happened.
type Fault struct {
	Place
	// At is the time since the plan was made.
	At time.Duration
	// Of is the request, Detail what was done to it.
	Of, Detail string
}

// History is what happened, in order of time.
type History []Fault

// History returns what happened so far. Faults of the same moment are in order
// of their names and requests, so that goroutines which ran at the same time
// make no difference.
func (p *Plan) History() History {
	p.mu.Lock()
	h := slices.Clone(p.happened)
	p.mu.Unlock()
	slices.SortStableFunc(h, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Request, b.Request))
	})
	return h
}

// Counts says how often each kind of fault happened.
func (h History) Counts() map[Kind]int {
	counts := map[Kind]int{}
	for _, f := range h {
		counts[f.Kind]++
	}
	return counts
}

// String is a table, one line for each fault.
func (h History) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "time\trequest\tof\tfault\tdetail")
	for _, f := range h {
		fmt.Fprintf(w, "%s\t%s %d\t%s\t%s\t%s\n", short(f.At), f.Stream, f.Request, f.Of, f.Kind, f.Detail)
	}
	w.Flush()
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
