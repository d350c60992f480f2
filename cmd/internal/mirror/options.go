package mirror

import (
	"log/slog"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// Options shape a [Mirror]. The zero value is a good choice.
type Options struct {
	// Namespaces narrows namespaced resources to these namespaces; none means all.
	Namespaces []string
	// LabelSelector and FieldSelector narrow every table.
	LabelSelector, FieldSelector string
	// KeepManagedFields keeps managed fields, often a third of an object.
	KeepManagedFields bool
	// ShowSecrets keeps the values of Secrets. Without it they are replaced by
	// [Hidden] before anything is kept.
	ShowSecrets bool
	// AppliedCopies names the annotations in which an applier keeps a copy of the
	// object, with all that is secret in it; [kube.AppliedCopies] if nil. They are
	// hidden in Secrets, and are not written to disk unless Disk.LastApplied says so.
	// A * at the beginning or at the end of a name stands for any text.
	AppliedCopies []string
	// AsOf makes a mirror of a [Directory] show a moment of its history; the zero value is
	// the present.
	AsOf sqlite.Moment
	// Cluster narrows a mirror of a [Directory] of several clusters, or a walk of its past,
	// to one.
	Cluster string
	// Disk, if set, keeps the tables on disk too.
	Disk *Disk
	// Feed, if set, writes the tables to an engine too, such as a database.
	Feed *Feed
	// Verify compares each table with the server once in this time, slowly, and repairs
	// differences; 0 means never. The results are in [Mirror.Problems].
	Verify time.Duration
	// SilenceLimit is how long the server may say nothing before a watch is
	// replaced; see [tarn.Options].
	SilenceLimit time.Duration
	// Logger receives all other messages than those to OnError and OnBad; slog.Default if
	// nil.
	Logger *slog.Logger
	// OnError receives every failure to list or watch, OnBad every object that could not be
	// processed. Both are also in [Mirror.Problems], and are logged if there is no function.
	// Several goroutines call them at a time, and they should return soon.
	OnError func(table string, err error)
	OnBad   func(table string, bad tarn.BadObject)
}

// appliedCopies is AppliedCopies with its default.
func (o Options) appliedCopies() []string {
	if o.AppliedCopies == nil {
		return kube.AppliedCopies()
	}
	return o.AppliedCopies
}
