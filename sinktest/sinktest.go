package sinktest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// Object is what the suite commits. It is plain data, so that a sink can write it as it
// likes, and objects are the same when they are equal.
type Object struct {
	Key     tarn.Key
	Version tarn.Version
	UID     string
	Text    string
}

// A Subject is one sink, with what it holds beyond the process.
type Subject struct {
	// Open returns the sink as a process makes it that finds what earlier ones have
	// committed. The suite calls its method Open next, and Close before it asks for
	// another one.
	Open func() tarn.Sink[Object]
	// Content reads what the sink holds. It may be nil if the sink is a
	// [tarn.Restorer].
	Content func() (map[tarn.Key]Object, error)
	// Gaps reads the gaps that were committed, in order. It is nil if the sink does not
	// keep them.
	Gaps func() ([]tarn.Gap, error)
}

// Run checks the sinks that newSubject makes: one new, empty sink for each subtest.
// newSubject may use t to clean up.
func Run(t *testing.T, newSubject func(t *testing.T) Subject) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.on(t, newSubject(t)) })
	}
}

// check is one demand of the contract.
type check struct {
	name string
	run  func(*rig)
}

var checks = slices.Concat(basic, hard, random)

func (c check) on(t reporter, s Subject) {
	r := &rig{T: t, subject: s}
	r.open()
	c.run(r)
	r.sink.Close()
}

// reporter is as much of testing.T as the checks need, so that the suite's own tests can
// look at what it reports.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// rig lets a check speak of states instead of calls.
type rig struct {
	T       reporter
	subject Subject
	sink    tarn.Sink[Object]
	kept    tarn.Kept
}

// open opens the sink as a new process does.
func (r *rig) open() {
	r.T.Helper()
	r.sink = r.subject.Open()
	var err error
	if r.kept, err = r.sink.Open(context.Background(), func() error { return nil }); err != nil {
		r.T.Errorf("Open failed: %v", err)
	}
}

func (r *rig) reopen() {
	r.T.Helper()
	r.sink.Close()
	r.open()
}

// state is what a sink holds.
type state struct {
	objects   map[tarn.Key]Object
	positions []tarn.Position
	contact   time.Time
}

func (s state) clone() state {
	s.objects = maps.Clone(s.objects)
	return s
}

// after is the state that a batch leads to.
func (s state) after(b tarn.Batch[Object]) state {
	next := s.clone()
	if b.Whole || next.objects == nil {
		next.objects = map[tarn.Key]Object{}
	}
	for _, c := range b.Changes {
		if c.Type == tarn.Delete {
			delete(next.objects, c.Key)
		} else {
			next.objects[c.Key] = c.Object
		}
	}
	next.positions, next.contact = b.Positions, b.LastContact
	return next
}

// commit gives the sink a batch, which must succeed.
func (r *rig) commit(b tarn.Batch[Object]) {
	r.T.Helper()
	if err := r.sink.Commit(context.Background(), b); err != nil {
		r.T.Errorf("Commit of %d changes failed: %v", len(b.Changes), err)
	}
}

// commits gives the sink batches, one after the other, and compares after each.
func (r *rig) commits(batches ...tarn.Batch[Object]) {
	r.T.Helper()
	var want state
	for i, b := range batches {
		want = want.after(b)
		r.commit(b)
		for _, problem := range r.differs(want) {
			r.T.Errorf("after batch %d: %s", i+1, problem)
		}
	}
}

// differs opens the sink again, asks it in every way that there is, and says how it is
// not as wanted.
func (r *rig) differs(want state) (problems []string) {
	r.T.Helper()
	note := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	r.reopen()
	if have, want := inOrder(r.kept.Positions), inOrder(want.positions); !slices.Equal(have, want) {
		note("Open returned the positions %+v, want %+v", have, want)
	}
	if d := r.kept.LastContact.Sub(want.contact).Abs(); len(want.positions) > 0 && d >= time.Second {
		note("Open returned that the source was heard at %s, want %s", r.kept.LastContact, want.contact)
	}
	if restorer, ok := r.sink.(tarn.Restorer[Object]); ok && len(r.kept.Positions) > 0 {
		if have, err := loaded(restorer); err != nil {
			note("Load failed: %v", err)
		} else if diff := difference(want.objects, have); diff != "" {
			note("Load has the wrong content:\n%s", diff)
		}
	}
	if lister, ok := r.sink.(tarn.SinkLister); ok {
		if diff := heldDifference(want.objects, lister); diff != "" {
			note("Held has the wrong content:\n%s", diff)
		}
	}
	if r.subject.Content != nil {
		if have, err := r.subject.Content(); err != nil {
			note("the content cannot be read: %v", err)
		} else if diff := difference(want.objects, have); diff != "" {
			note("it has the wrong content:\n%s", diff)
		}
	}
	return problems
}

func loaded(restorer tarn.Restorer[Object]) (map[tarn.Key]Object, error) {
	changes, err := restorer.Load(context.Background())
	all := map[tarn.Key]Object{}
	for _, c := range changes {
		if _, twice := all[c.Key]; twice || c.Type != tarn.Add || c.Version != "" && c.Version != c.Object.Version {
			return nil, fmt.Errorf("it returned %+v, want one Add for each key, with its version or none", c)
		}
		all[c.Key] = c.Object
	}
	return all, err
}

// heldDifference compares what the sink says that it holds, as far as it says it.
func heldDifference(want map[tarn.Key]Object, lister tarn.SinkLister) string {
	have := map[tarn.Key]Object{}
	for m, err := range lister.Held(context.Background()) {
		if err != nil {
			return "  it failed: " + err.Error()
		}
		o := want[m.Key]
		o.Key = m.Key
		if m.Version != "" {
			o.Version = m.Version
		}
		if m.UID != "" {
			o.UID = m.UID
		}
		have[m.Key] = o
	}
	return difference(want, have)
}

// difference says how have is not want, "" if it is. Of many differences it shows a few.
func difference(want, have map[tarn.Key]Object) string {
	var lines []string
	for key, o := range want {
		if other, ok := have[key]; !ok {
			lines = append(lines, fmt.Sprintf("  %q is missing", key))
		} else if other != o {
			lines = append(lines, fmt.Sprintf("  %q is %+v, want %+v", key, other, o))
		}
	}
	for key := range have {
		if _, ok := want[key]; !ok {
			lines = append(lines, fmt.Sprintf("  %q is there, and should not be", key))
		}
	}
	slices.Sort(lines)
	const shown = 12
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Sprintf("  and %d more", more))
	}
	return strings.Join(lines, "\n")
}

func inOrder(positions []tarn.Position) []tarn.Position {
	return slices.SortedFunc(slices.Values(positions), func(a, b tarn.Position) int { return strings.Compare(a.Section, b.Section) })
}
