package changelog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tarnproject/tarn"
)

// A Log is read by any number of goroutines while it is written.
//
//   - Walks are in the order of the log, and each sees one committed state of it.
//   - A walk that yields an error ends with it.
//   - The caller of a walk owns the bytes of objects: the log does not change them.
type Log interface {
	// Bounds returns what is kept.
	Bounds(ctx context.Context) (Bounds, error)
	// After walks all states and gaps after a place. It fails with ErrExpired if some of
	// them are no longer kept, also during a walk.
	After(ctx context.Context, place Seq) iter.Seq2[Entry, error]
	// Of walks the states of one key, of all objects that had it, and the gaps between
	// them.
	Of(ctx context.Context, key tarn.Key) iter.Seq2[Entry, error]
	// AsOf walks the states that were valid at a place: one for each object that lived
	// then, in the order of keys, and before them the gaps that the place lies in. It
	// fails with ErrExpired before the bounds, and if states of the place are thinned out
	// during the walk.
	AsOf(ctx context.Context, place Place) iter.Seq2[Entry, error]
	// AtTime is the place of the last entry that arrived at or before a time. It fails
	// with ErrExpired before the bounds, and with ErrAhead while the log has no complete
	// state yet.
	AtTime(ctx context.Context, t time.Time) (Place, error)
	// AtVersion is the place at which the copy had a version. It fails with ErrExpired
	// if that is no longer kept or the source has gone back since, and with ErrAhead if
	// the copy has not reached the version.
	AtVersion(ctx context.Context, v tarn.Version) (Place, error)
}

// Seq is a place in a log: entries are numbered in their order, from 1 on, with holes.
type Seq int64

// A Place is where a reader begins.
type Place struct {
	Seq Seq
	// Gaps contain the place: the requested moment is between two states of the log, and
	// states between them may be missing. A watch must not begin there.
	Gaps []Gap
}

// Bounds say what a log keeps.
type Bounds struct {
	// First is the oldest place that can be read from, Last the newest entry.
	First, Last Seq
	// Since is the time of First, and Until the time of the last contact with the source.
	Since, Until time.Time
	// Thinned is the place up to which states were thinned out, 0 if none were. [Log.After]
	// fails before it.
	Thinned Seq
	// States is how many states are kept.
	States int64
}

// An Entry is a state or a gap.
type Entry struct {
	State
	// Gap is set if the entry is no state; then only State.Seq is set too.
	Gap *Gap
}

// A State is one state that an object had in the copy.
type State struct {
	Seq       Seq
	Key       tarn.Key
	UID       string
	Version   tarn.Version
	Operation Operation
	// Heard is when this process learned of the state, and Until when it learned of the
	// next one of the same object; zero if there is no next one. A Deleted state was
	// never valid: Until equals Heard.
	Heard, Until time.Time
	// Object is as the codec wrote it; of a Deleted state, the last one that is known.
	Object []byte
}

// Operation says how an object got into a state.
type Operation uint8

const (
	// Added is the first state that the log has of an object.
	Added Operation = iota + 1
	Modified
	Deleted
)

func (o Operation) String() string {
	switch o {
	case Added:
		return "added"
	case Modified:
		return "modified"
	case Deleted:
		return "deleted"
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// A Gap is a range within which states may be missing.
type Gap struct {
	// Seq is its place: it lies before the states that follow it.
	Seq Seq
	tarn.Gap
	// Since is the time of the last contact with the source before the gap, Until that of
	// the first contact after it.
	Since, Until time.Time
}

// The causes of gaps beside those of [tarn.Gap].
const (
	// GapThinned: old states were thinned out.
	GapThinned tarn.GapCause = "thinned"
	// GapUnwritten: an object could not be encoded.
	GapUnwritten tarn.GapCause = "not written"
	// GapDropped: what was kept before was dropped, because other objects or fields are
	// kept now, and it could not be rewritten.
	GapDropped tarn.GapCause = "dropped"
	// GapDamaged: rows of the log were damaged.
	GapDamaged tarn.GapCause = "damaged"
)

// Covers reports whether a time lies in the gap.
func (g Gap) Covers(t time.Time) bool { return t.After(g.Since) && t.Before(g.Until) }

// CoversVersion reports whether a version lies strictly in the gap.
func (g Gap) CoversVersion(v tarn.Version) bool {
	return g.From.OlderThan(v) && v.OlderThan(g.To)
}

func (g Gap) String() string {
	return fmt.Sprintf("%s to %s, %s", g.Since.Format(time.DateTime), g.Until.Format(time.DateTime), g.Gap)
}

var (
	// ErrExpired says that the log no longer has the requested place.
	ErrExpired = errors.New("the log no longer keeps that")
	// ErrAhead says that the copy has not reached the requested version.
	ErrAhead = errors.New("the copy has not come that far")
	// ErrNoLog says that no history is kept.
	ErrNoLog = errors.New("no history is kept")
)

// Typed is a [State] with its object.
type Typed[T any] struct {
	State
	Gap    *Gap
	Object T
}

// Decode decodes the objects of a walk. decode must not keep the bytes.
func Decode[T any](walk iter.Seq2[Entry, error], decode func([]byte) (T, error)) iter.Seq2[Typed[T], error] {
	return func(yield func(Typed[T], error) bool) {
		for e, err := range walk {
			typed := Typed[T]{State: e.State, Gap: e.Gap}
			if err == nil && e.Gap == nil && e.State.Object != nil {
				if typed.Object, err = decode(e.State.Object); err != nil {
					err = fmt.Errorf("%s at version %s: %w", e.Key, e.Version, err)
				}
			}
			if !yield(typed, err) || err != nil {
				return
			}
		}
	}
}
