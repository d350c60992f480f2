package mirror

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/sqlite/ondisk"
	"github.com/tarnproject/tarn/verify"
)

// Object is what tables hold. Equal parts of objects are the same memory: they
// are read-only.
type Object = *unstructured.Unstructured

// Table is the live copy of one resource. Any number of goroutines may use it.
type Table struct {
	resource Resource
	replica  *tarn.Replica[Object]
	store    *memory.Store[Object]
	inputs   inputs
	// read says how to make its sources.
	read      reading
	transform func(Object) (Object, error)
	// hides says that transform removes values from Secrets.
	hides bool
	// appliedCopies are the annotations that repeat objects.
	appliedCopies []string
	// namespaces are the namespaces to which the table is narrowed.
	namespaces []string
	// columns are the columns from the resource's definition, if it was requested.
	columns []ondisk.Column

	expected expectation
	history  history
	weight   weight
	// rolling compares the table with the server; nil without [Options.Verify].
	rolling *verify.Rolling[Object]
}

// reading says how to make the sources of a table.
type reading struct {
	opts     Options
	decoding kube.SourceOptions
}

// Resource is the resource that the table copies.
func (t *Table) Resource() Resource { return t.resource }

// Replica is the copy, with Health, WaitFor and Changes.
func (t *Table) Replica() *tarn.Replica[Object] { return t.replica }

// Store holds the copy, with snapshots, indexes and queries. Only the replica may write to
// it.
func (t *Table) Store() *memory.Store[Object] { return t.store }

// Source is the source of the copy, of the first namespace if there are several; see
// [Table.Sources]. A table of a [Directory] has one only if it can be compared with a server.
func (t *Table) Source() *kube.Source[Object] { return t.Sources()[0] }

// Sources are the sources of the copy, one for each namespace, or for each cluster. They
// return objects as the server has them, before Transform.
func (t *Table) Sources() []*kube.Source[Object] { return t.inputs.sources() }

// Namespaces are the namespaces to which the table is narrowed; none means all.
func (t *Table) Namespaces() []string { return t.namespaces }

// Columns are the columns that the resource's definition adds to its table in SQL, if the
// definition was requested.
func (t *Table) Columns() []ondisk.Column { return t.columns }

// Transform turns a source's objects into those that the table keeps; nil if they are the
// same. It may change the object in place.
func (t *Table) Transform() func(Object) (Object, error) { return t.transform }

// Status is the state of the table.
func (t *Table) Status() Status {
	health := t.replica.Health()
	s := Status{
		Health:          health,
		Objects:         t.store.Len(),
		EventsPerSecond: t.history.rate(time.Now(), health.Events),
		Lag:             t.history.lag(),
		BytesPerObject:  t.weight.perObject(),
	}
	switch {
	case health.Synced:
		s.Received, s.Expected = s.Objects, s.Objects
	case health.FromDisk:
		s.Received, s.Expected = s.Objects, max(s.Objects, t.expected.count())
	default:
		s.Received, s.Expected = t.inputs.intake().count(), t.expected.count()
	}
	return s
}

// History is the state of the table over the last five minutes, one sample a second, oldest
// first.
func (t *Table) History() []Sample { return t.history.list() }

// sample adds to the history.
func (t *Table) sample(now time.Time) {
	health := t.replica.Health()
	if health.Synced {
		t.weight.update(now, t.store, health.Events)
	}
	t.history.add(Sample{Time: now, Objects: t.store.Len(), Age: health.Age, Lag: t.lag(), BytesPerObject: t.weight.perObject()}, health.Events)
}

// lag is the longest time that a change has waited, since the last call.
func (t *Table) lag() time.Duration {
	longest := t.inputs.intake().lag()
	for _, s := range t.replica.Subscribers() {
		longest = max(longest, s.Age)
	}
	return longest
}

// run keeps the copy until ctx ends.
func (t *Table) run(ctx context.Context) { _ = t.replica.Run(ctx) } // returns why ctx ended
