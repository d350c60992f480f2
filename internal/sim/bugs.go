package sim

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/tarnproject/tarn"
)

// Bug is a planted fault of the pipeline itself, to show that the simulation finds it.
type Bug int

const (
	NoBug Bug = iota
	// LostDelete: the store sometimes ignores a delete.
	LostDelete
	// VersionAhead: the store writes the version before its content.
	VersionAhead
	// ReorderedKey: a follower gets two changes of a key in the wrong order.
	ReorderedKey
	// DroppedOnReconnect: the first event of each watch but the first is dropped.
	DroppedOnReconnect
	// UnboundedQueue: the changes that wait for a follower are never folded.
	UnboundedQueue
	// MissedRewind: the source's current version is ignored.
	MissedRewind
	// SyntheticDelete: a bad object in a list counts as a missing one.
	SyntheticDelete

	// The bugs from here on are of sinks.

	// ForgottenDeletes: a sink that is compared with the copy does not learn what is gone.
	ForgottenDeletes
	// PositionFirst: a sink is given the position, and then what belongs to it.
	PositionFirst
	// SilentFold and SilentRelist: a sink does not learn that states were folded, or
	// that the state was read again.
	SilentFold
	SilentRelist
	// GivenTwice: a sink is given a state twice.
	GivenTwice
	// LostRetry: a commit that is tried again has lost its changes.
	LostRetry
	// SilentBad: a sink is not notified of objects that the copy could not take.
	SilentBad
)

var bugNames = [...]string{"no bug", "lost delete", "version ahead of content", "reordered key",
	"dropped event on reconnect", "unbounded queue", "missed rewind", "synthetic delete for a bad object",
	"forgotten deletes", "position before content", "fold without a gap", "relist without a gap", "state given twice", "retry without changes", "bad objects without a gap"}

func (b Bug) String() string { return bugNames[b] }

func cmpNames(a, b *follower) int { return strings.Compare(a.name, b.name) }

// bound is that of a follower's backlog.
func (b Bug) bound(right int) int {
	if b == UnboundedQueue {
		return math.MaxInt
	}
	return right
}

// store wraps the store with the bug.
func (b Bug) store(right *recordingStore) tarn.ReadStore[*Object] {
	if b == LostDelete || b == VersionAhead {
		return &buggyStore{recordingStore: right, bug: b}
	}
	return right
}

type buggyStore struct {
	*recordingStore
	bug     Bug
	deletes int
	late    []tarn.Change[*Object]
}

func (s *buggyStore) Apply(changes []tarn.Change[*Object], at tarn.Position) error {
	if s.bug == VersionAhead {
		late := s.late
		s.late = append([]tarn.Change[*Object](nil), changes...)
		return s.recordingStore.Apply(late, at)
	}
	var kept []tarn.Change[*Object]
	for _, c := range changes {
		if c.Type == tarn.Delete {
			if s.deletes++; s.deletes%3 == 0 {
				continue
			}
		}
		kept = append(kept, c)
	}
	return s.recordingStore.Apply(kept, at)
}

// deliver wraps a follower with the bug.
func (b Bug) deliver(right func(tarn.Change[*Object])) func(tarn.Change[*Object]) {
	if b != ReorderedKey {
		return right
	}
	var held *tarn.Change[*Object]
	return func(c tarn.Change[*Object]) {
		if held == nil && c.Type == tarn.Update {
			held = &c
			return
		}
		right(c)
		if held != nil && held.Key == c.Key {
			right(*held)
			held = nil
		}
	}
}

// source wraps the source, after the wire, with the bug.
func (b Bug) source(right tarn.Source[*Object]) tarn.Source[*Object] {
	switch b {
	case DroppedOnReconnect, MissedRewind, SyntheticDelete:
		return &buggySource{Source: right, bug: b}
	default:
		return right
	}
}

type buggySource struct {
	tarn.Source[*Object]
	bug     Bug
	watches int
	highest int
}

func (s *buggySource) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[*Object], error) {
	page, err := s.Source.List(ctx, q)
	if err != nil {
		return page, err
	}
	switch s.bug {
	case MissedRewind:
		if q.Limit == 1 && q.AtLeast == tarn.Latest {
			n, _ := strconv.Atoi(string(page.Version))
			s.highest = max(s.highest, n)
			page.Version = "999999"
		}
	case SyntheticDelete:
		good := page.Items[:0:0]
		for _, o := range page.Items {
			if o != nil && o.Name != "" && !o.Poison {
				good = append(good, o)
			}
		}
		page.Items, page.Bad = good, nil
	}
	return page, nil
}

func (s *buggySource) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*Object], error) {
	stream, err := s.Source.Watch(ctx, q)
	if err != nil || s.bug != DroppedOnReconnect {
		return stream, err
	}
	if s.watches++; s.watches == 1 || q.Initial {
		return stream, nil
	}
	return &forgetful{Stream: stream}, nil
}

// forgetful drops the first event.
type forgetful struct {
	tarn.Stream[*Object]
	done bool
}

func (s *forgetful) Next(ctx context.Context, buf []tarn.Event[*Object]) (int, error) {
	for {
		n, err := s.Stream.Next(ctx, buf)
		if err != nil || s.done {
			return n, err
		}
		s.done = true
		if copy(buf, buf[1:n]); n > 1 {
			return n - 1, nil
		}
	}
}
