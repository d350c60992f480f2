package mirror

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/sqlite"
)

// Problem is something that is or was wrong with a table. Repeated occurrences of the same
// error are one problem.
type Problem struct {
	Table string
	// Cluster is empty if the mirror has one cluster, or if the problem concerns all
	// clusters.
	Cluster string
	// What is the error, in a few words that are the same each time; Detail is the last error
	// in full, Advice what can be done.
	What, Detail, Advice string
	Since                time.Time
	// Until is when it ended; zero while it lasts.
	Until time.Time
	// Count is the number of occurrences.
	Count int
}

// Over reports whether the problem has ended.
func (p Problem) Over() bool { return !p.Until.IsZero() }

const (
	// maxProblems is how many are kept; current problems are always kept.
	maxProblems = 200
	// relapse is how soon a problem must come back to count as the same one. Otherwise a
	// problem that comes and goes would fill the list.
	relapse = 5 * time.Minute
)

// problems are those of all tables.
//
// Only Health and the last comparison decide whether a problem is current. They are read at
// every request and once a second; the error handler only counts occurrences. So no problem
// is shown that is over, and none is left out because it was shown before.
type problems struct {
	mu   sync.Mutex
	list []*Problem
}

// met records an error.
func (ps *problems) met(now time.Time, table Resource, d diagnosis) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.open(now, table, d)
	p.Count++
	p.Detail = d.detail
}

// open returns the problem of a table as a current one.
func (ps *problems) open(now time.Time, table Resource, d diagnosis) *Problem {
	for _, p := range slices.Backward(ps.list) {
		if p.Table == table.Name() && p.Cluster == d.cluster && p.What == d.what && (!p.Over() || now.Sub(p.Until) < relapse) {
			p.Until = time.Time{}
			return p
		}
	}
	p := &Problem{Table: table.Name(), Cluster: d.cluster, What: d.what, Detail: d.detail, Advice: d.advice(table), Since: now}
	ps.list = append(ps.list, p)
	if len(ps.list) > maxProblems {
		if i := slices.IndexFunc(ps.list, func(p *Problem) bool { return p.Over() }); i >= 0 {
			ps.list = slices.Delete(ps.list, i, i+1)
		}
	}
	return p
}

// review updates the problems of a table from its Health, which is read under the
// lock: Health is updated before a problem is reported.
func (ps *problems) review(now time.Time, table Resource, wrong func() []diagnosis) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var lasting []*Problem
	for _, d := range wrong() {
		p := ps.open(now, table, d)
		p.Detail, p.Count = d.detail, max(p.Count, d.count)
		lasting = append(lasting, p)
	}
	for _, p := range ps.list {
		if p.Table == table.Name() && !p.Over() && !slices.Contains(lasting, p) {
			p.Until = now
		}
	}
}

// all returns them, newest first.
func (ps *problems) all() []Problem {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := make([]Problem, len(ps.list))
	for i, p := range ps.list {
		all[i] = *p
		all[i].Count = max(p.Count, 1) // Health may have it before the handler is called
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.What, b.What))
	})
	return all
}

// diagnosesOf returns the current errors in health. clusters says that sections are clusters.
func diagnosesOf(health tarn.Health, clusters bool) (found []diagnosis) {
	sections := health.Sections
	if len(sections) == 0 {
		sections = []tarn.Health{health}
	}
	for _, h := range sections {
		if h.Err != nil {
			d := diagnose(h.Err)
			if clusters {
				d.cluster, d.count = h.Section, h.Failures
			}
			found = append(found, d)
		}
	}
	if d := health.Disk; d != nil && d.Err != nil {
		advice := adviceDisk
		if errors.Is(d.Err, sqlite.ErrLogFull) {
			advice = adviceLog
		}
		found = append(found, diagnosis{what: "cannot be written to disk", detail: detailOf(d.Err), advice: always(advice)})
	}
	if health.BadCount > 0 {
		var bad tarn.BadObject
		if len(health.Bad) > 0 {
			bad = health.Bad[0]
		}
		found = append(found, diagnoseBad(bad))
	}
	return found
}

const (
	adviceDisk = "the copy works on in memory, and what waits is written when that is possible again: is the disk full, read-only or failing?"
	adviceLog  = "the copy works on in memory, and what waits is written when the reader is gone: end the tool that has the database open in a transaction, or let it read in shorter ones"
)
