package tarn

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A SinkPolicy says how a [Sink] wants to get its changes.
type SinkPolicy[T any] struct {
	// Name stands in Health, logs and errors, such as "disk" or "postgres".
	Name string
	// Delay is how long changes are collected before they are committed, and BatchSize
	// the number of changed objects that ends the wait early. Zero means no delay, and
	// 4,096 objects.
	Delay     time.Duration
	BatchSize int
	// EveryState asks for each state of an object. Else only the last state within a
	// batch is delivered.
	EveryState bool
	// MaxBytes bounds the states that wait, by SizeOf, if EveryState is set. Beyond the
	// bound they are folded to the last state of each object, and the folded range is
	// delivered as a [Gap]. Zero means 64 MiB. SizeOf estimates the memory of a change;
	// without it each counts as 1 KiB.
	MaxBytes int64
	SizeOf   func(Change[T]) int
}

const (
	defaultSinkBatch = 4096
	defaultSinkBytes = 64 << 20
	defaultSinkSize  = 1 << 10
)

func (p SinkPolicy[T]) withDefaults() SinkPolicy[T] {
	if p.Name == "" {
		p.Name = "sink"
	}
	if p.BatchSize <= 0 {
		p.BatchSize = defaultSinkBatch
	}
	if p.MaxBytes <= 0 {
		p.MaxBytes = defaultSinkBytes
	}
	if p.SizeOf == nil {
		p.SizeOf = func(Change[T]) int { return defaultSinkSize }
	}
	return p
}

// A Batch is what a [Sink] commits in one step.
type Batch[T any] struct {
	// Again says that a commit of this very batch has failed. It may have taken effect
	// nevertheless; then the sink need not do anything. The batch's positions prove that
	// only if they have versions and the sink did not have them before the first attempt:
	// a repair brings other content at the same position.
	Again bool
	// Whole tells the sink to remove everything that it holds first: the changes begin
	// with the whole content.
	Whole bool
	// Changes are in order. Where states were folded, a key has one change: Delete if it
	// is gone, else Add or Update with its last state. Old is not set.
	Changes []Change[T]
	// Positions are those of all sections after these changes. If they are all that
	// changed, Changes is empty. One without a version need not be kept: a sink that
	// opens without positions is sent everything.
	Positions []Position
	// Gaps are ranges of versions, up to Positions, within which states may be missing.
	Gaps []Gap
	// LastContact is the time of the last contact with the source.
	LastContact time.Time
}

// After returns the batch with gaps that begin at the positions which the sink still has.
// It is for a sink that returned [ErrSinkEmpty] because its engine went back: the replica
// knows what it committed, but not what the engine lost.
func (b Batch[T]) After(held []Position) Batch[T] {
	b.Gaps = slices.Clone(b.Gaps)
	for _, p := range b.Positions {
		at := Position{Section: p.Section}
		if i := slices.IndexFunc(held, func(h Position) bool { return h.Section == p.Section }); i >= 0 {
			at = held[i]
		}
		i := slices.IndexFunc(b.Gaps, func(g Gap) bool { return g.Section == p.Section })
		switch {
		case i < 0 && (at.Version != p.Version || at.Epoch != p.Epoch):
			b.Gaps = append(b.Gaps, Gap{Section: p.Section, From: at.Version, To: p.Version, Cause: GapReconciled})
		case i >= 0 && (at.Version == "" || at.Version.OlderThan(b.Gaps[i].From)):
			b.Gaps[i].From = at.Version
		}
	}
	return b
}

// A Gap is a range of versions of one section within which a sink did not get every
// state: after From, and up to To. An empty From or To is unknown: on that side only a
// time bounds the range, if the gap has one.
type Gap struct {
	Section  string
	From, To Version
	Cause    GapCause
}

// GapCause says why states were missed.
type GapCause string

const (
	// GapFolded: the sink was slower than the source.
	GapFolded GapCause = "folded"
	// GapRead: the collection was read again, because the watch could not be resumed.
	GapRead GapCause = "read anew"
	// GapRewound: the source went back in time, or was replaced by another one.
	GapRewound GapCause = "rewound"
	// GapReconciled: the sink was compared with the copy when it was attached.
	GapReconciled GapCause = "reconciled"
	// GapBad: there were objects that the copy could not take; see [Position].
	GapBad GapCause = "bad objects"
)

func (g Gap) String() string {
	s := fmt.Sprintf("from %q to %q (%s)", g.From, g.To, g.Cause)
	switch {
	case g.From == "" && g.To == "":
		s = fmt.Sprintf("(%s)", g.Cause)
	case g.From == "":
		s = fmt.Sprintf("up to %q (%s)", g.To, g.Cause)
	case g.To == "":
		s = fmt.Sprintf("from %q on (%s)", g.From, g.Cause)
	}
	if g.Section != "" {
		s = g.Section + " " + s
	}
	return s
}

// ErrSinkEmpty says that what a sink held is gone, as after a damaged file was replaced
// by a new one. The replica then commits the whole content.
var ErrSinkEmpty = errors.New("the sink has lost its content")

// SinkHealth is how far a sink, or a store on disk, has followed.
type SinkHealth struct {
	// Name is that of [SinkPolicy]; empty for a store.
	Name string
	// Version is the state that is committed.
	Version Version
	// Pending is the number of pending changes, PendingBytes their approximate size if
	// the sink's policy bounds it, and Lag how long the oldest of them has waited.
	Pending      int
	PendingBytes int64
	Lag          time.Duration
	// Err is why the sink cannot commit; nil while it can. The copy is not affected, and
	// pending changes are committed once the sink works again.
	Err      error
	ErrSince time.Time
	// Failures counts failed commits, Gaps the gaps that were delivered.
	Failures int64
	Gaps     int64
	// Bad names objects whose present state the sink refused, at most a hundred; BadCount is
	// how many there are. The sink has their last good state, and everything else.
	Bad      []BadObject
	BadCount int
	// Note says why the content found at the start was not used; empty if it was used.
	Note string
}

func (s SinkHealth) String() string {
	text := "on disk at version " + string(s.Version)
	if s.Name != "" && s.Name != "disk" {
		text = s.Name + " at version " + string(s.Version)
	}
	if s.Version == "" {
		text = "nothing on disk yet"
		if s.Name != "" && s.Name != "disk" {
			text = "nothing in " + s.Name + " yet"
		}
	}
	if s.Pending > 0 {
		text += fmt.Sprintf(", %d objects waiting for %s", s.Pending, s.Lag.Round(time.Millisecond))
	}
	if s.BadCount > 0 {
		text += fmt.Sprintf(", %d objects refused, such as %s: %v", s.BadCount, s.Bad[0].Key, s.Bad[0].Err)
	}
	if s.Err != nil {
		text += fmt.Sprintf(", in memory only since %s: %v", s.ErrSince.Format(time.TimeOnly), s.Err)
	}
	return text
}
