package mirror

import (
	"log/slog"
	"time"

	"github.com/tarnproject/tarn"
)

// Options shape a [Mirror]. The zero value is a good choice.
type Options struct {
	// Namespaces narrows what is in namespaces to these; none means all.
	Namespaces []string
	// LabelSelector and FieldSelector narrow every table.
	LabelSelector, FieldSelector string
	// KeepManagedFields keeps who owns which field, often a third of an object.
	KeepManagedFields bool
	// ShowSecrets keeps the values of Secrets. Without it they are replaced by
	// [Hidden] before anything is kept.
	ShowSecrets bool
	// Disk, if set, keeps the tables on disk too.
	Disk *Disk
	// Verify compares each table with the server once in this time, slowly, and
	// repairs what differs; 0 is never. What is found is in [Mirror.Problems].
	Verify time.Duration
	// SilenceLimit is how long the server may say nothing before a watch is
	// replaced; see [tarn.Options].
	SilenceLimit time.Duration
	// Logger takes what there is to say beside OnError and OnBad; slog.Default
	// if nil.
	Logger *slog.Logger
	// OnError sees every failure to list or watch, OnBad every object that could
	// not be taken. Both are also in [Mirror.Problems], and are logged if there
	// is no function. They are called by several goroutines at a time and should
	// return soon.
	OnError func(table string, err error)
	OnBad   func(table string, bad tarn.BadObject)
}
