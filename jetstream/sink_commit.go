package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nuid"
	"github.com/tarnproject/tarn"
)

// Commit writes a batch.
//
// What an earlier attempt sent, and had no answer to, may arrive at any time: the server then
// refuses what is sent after the checkpoint before it. Whose checkpoint it is shows in the
// next attempt, which follows it if it is of this sink.
func (s *Sink[T]) Commit(ctx context.Context, b tarn.Batch[T]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !b.Again || s.pending == "" {
		s.pending = nuid.Next()
	}
	s.touch(b.Changes)
	err := s.commit(ctx, b)
	for range lateTries {
		if !errors.Is(err, errOther) {
			break
		}
		b.Again = true
		err = s.commit(ctx, b)
	}
	if _, taken := errors.AsType[tarn.ObjectErrors](err); err == nil || taken {
		return err
	}
	return s.explain("write to", err)
}

// lateTries is how often a message is sent again after another one has come before it. At most
// one of those that follow the same checkpoint is taken, so once is enough unless answers are
// lost again.
const lateTries = 3

func (s *Sink[T]) commit(ctx context.Context, b tarn.Batch[T]) error {
	if err := s.own(ctx); err != nil {
		return err
	}
	if s.held != nil {
		b = b.After(s.held)
	}
	w, err := s.writing(ctx, b)
	if err != nil {
		return err
	}
	var bad tarn.ObjectErrors
	if w == nil {
		bad, err = s.badOf(ctx, b.Changes)
	} else if err = s.writeParts(ctx, w); err == nil {
		s.bad, bad = w.bad, w.errors
	}
	if err != nil {
		return err
	}
	s.pending, s.confirmed, s.held = "", s.at.Commit, nil
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// writing is a commit on its way.
type writing[T any] struct {
	// changes are those that the bucket does not have; marks of gaps, and of objects that
	// cannot be kept, are written after them.
	changes []tarn.Change[T]
	epoch   string
	marks   []message
	// last is the checkpoint of the commit's end.
	last Checkpoint
	// bad and errors are complete when all changes are encoded.
	bad    map[tarn.Key]tarn.Version
	errors tarn.ObjectErrors
}

// writing decides what must be written for a batch; nil if everything is there.
//
// After a failure the checkpoint tells whether the commit took effect. One that did in part is
// compared with the bucket, as is any other batch with content that may be there already.
func (s *Sink[T]) writing(ctx context.Context, b tarn.Batch[T]) (*writing[T], error) {
	begun := s.at.Commit != s.confirmed
	if s.at.Commit == s.pending && b.Again && !s.at.Incomplete {
		return nil, nil
	}
	w := &writing[T]{changes: inVersionOrder(b.Changes), epoch: epochOf(b.Positions), bad: map[tarn.Key]tarn.Version{}}
	missed := slices.ContainsFunc(w.changes, func(c tarn.Change[T]) bool { return c.Missed })
	if !b.Whole {
		maps.Copy(w.bad, s.bad)
	}
	compares := b.Whole || begun || slices.ContainsFunc(w.changes, func(c tarn.Change[T]) bool { return c.Rewound })
	if compares {
		held, err := s.heldOf(ctx, b.Whole, w.changes)
		if err != nil {
			return nil, err
		}
		before := s.at.Checkpoint
		s.unlocked(func() { s.compare(w, b.Whole, held) })
		if s.at.Commit != before.Commit || s.at.Objects != before.Objects {
			return nil, fmt.Errorf("%w while it was compared", errOther)
		}
	}
	next := &w.last
	*next = s.at.Checkpoint
	next.Positions, next.LastContact = checkpointPositions(b.Positions), b.LastContact
	next.Incomplete, next.Commit, next.Released = false, s.pending, false
	if len(b.Gaps) > 0 || compares || missed {
		next.Line = nuid.Next()
	}
	return w, s.markGaps(w, b)
}

// unlocked does something that may take longer than a lease, which is renewed meanwhile.
func (s *Sink[T]) unlocked(do func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	do()
}

// compare leaves out the changes that the bucket has, and deletes what is not in a whole
// batch.
func (s *Sink[T]) compare(w *writing[T], whole bool, held map[tarn.Key]state) {
	times := map[tarn.Key]int{}
	for _, c := range w.changes {
		times[c.Key]++
	}
	digests := s.digests(w.changes, w.epoch, func(key tarn.Key) bool {
		return !held[key].absent() || times[key] > 1
	})
	has := map[tarn.Key]int{} // the last change of a key that the bucket has, and how many
	seen := map[tarn.Key]bool{}
	for i, c := range w.changes {
		if digests[i].err != nil {
			continue
		}
		if isThere(held[c.Key], c, digests[i].digest, !seen[c.Key]) {
			has[c.Key] = i + 1
		}
		seen[c.Key] = true
	}
	var news []tarn.Change[T]
	if whole {
		news = inferredDeletes(w.changes, held)
	}
	for i, c := range w.changes {
		switch err := digests[i].err; {
		case i >= has[c.Key]:
			news = append(news, c)
		case err != nil: // a later state is there
			w.errors = append(w.errors, tarn.BadObject{Key: c.Key, Version: c.Version, Err: err})
		default:
			delete(w.bad, c.Key)
		}
	}
	w.changes = news
}

// isThere says whether a change is what the bucket has of its key. A delete is also there if
// there is nothing to delete.
func isThere[T any](is state, c tarn.Change[T], digest string, first bool) bool {
	if c.Type == tarn.Delete {
		return is.absent() && (first || is.deleted && is.Version == c.Version)
	}
	return !is.absent() && is.digest == digest
}

// inferredDeletes are those of the objects that a whole batch does not have.
func inferredDeletes[T any](changes []tarn.Change[T], held map[tarn.Key]state) (deletes []tarn.Change[T]) {
	there := make(map[tarn.Key]bool, len(changes))
	for _, c := range changes {
		there[c.Key] = true
	}
	for key, is := range held {
		if !there[key] && !is.deleted {
			deletes = append(deletes, tarn.Change[T]{Type: tarn.Delete, Missed: true, Key: key, Version: is.Version})
		}
	}
	slices.SortFunc(deletes, func(a, b tarn.Change[T]) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return deletes
}

// manyKeys is from how many keys on all are read, instead of each by itself.
const manyKeys = 200

// heldOf is what the bucket has of the keys of some changes, or of all.
func (s *Sink[T]) heldOf(ctx context.Context, all bool, changes []tarn.Change[T]) (map[tarn.Key]state, error) {
	if all || len(changes) > manyKeys {
		return s.states(ctx)
	}
	held := map[tarn.Key]state{}
	for _, c := range changes {
		if _, asked := held[c.Key]; asked {
			continue
		}
		r, found, err := s.last(ctx, escapeKey(c.Key))
		if err != nil {
			return nil, err
		}
		held[c.Key] = state{}
		if found {
			held[c.Key] = stateOf(c.Key, r.header)
		}
	}
	return held, nil
}

// markGaps adds the messages of gaps.
func (s *Sink[T]) markGaps(w *writing[T], b tarn.Batch[T]) error {
	for _, g := range b.Gaps {
		w.last.Gaps++
		gap := Gap{w.last.Gaps, g.Section, string(g.From), string(g.To), string(g.Cause), b.LastContact}
		data, err := json.Marshal(gap)
		if err != nil {
			return err
		}
		w.marks = append(w.marks, message{s.bucket.prefix() + gapKey(gap.Number), nil, data})
	}
	return nil
}

// markBad adds the messages of objects that became bad or are no longer.
func (s *Sink[T]) markBad(w *writing[T]) error {
	for _, e := range w.errors {
		if version, known := s.bad[e.Key]; known && version == e.Version || w.bad[e.Key] != e.Version {
			continue
		}
		data, err := json.Marshal(BadObject{string(e.Key), string(e.Version), e.Err.Error()})
		if err != nil {
			return err
		}
		w.marks = append(w.marks, message{s.bucket.prefix() + badKey(e.Key), nil, data})
	}
	for _, key := range slices.Sorted(maps.Keys(s.bad)) {
		if _, still := w.bad[key]; !still {
			w.marks = append(w.marks, message{s.bucket.prefix() + badKey(key), header{{headerOperation, operationPurged}, {headerRollup, "sub"}}, nil})
		}
	}
	return nil
}

// loadBad reads which objects could not be written.
func (s *Sink[T]) loadBad(ctx context.Context) (all []BadObject, err error) {
	s.bad = map[tarn.Key]tarn.Version{}
	err = s.walkBelow(ctx, badPrefix, false, func(_ string, r record, pending uint64) bool {
		var bad BadObject
		if len(r.data) > 0 && json.Unmarshal(r.data, &bad) == nil {
			s.bad[tarn.Key(bad.Key)] = tarn.Version(bad.Version)
			all = append(all, bad)
		}
		return pending > 0
	})
	return all, err
}

// badOf reads which changes of a commit could not be written: the attempt that took effect is
// over, and another one need not have come so far.
func (s *Sink[T]) badOf(ctx context.Context, changes []tarn.Change[T]) (found tarn.ObjectErrors, err error) {
	all, err := s.loadBad(ctx)
	for _, bad := range all {
		key, version := tarn.Key(bad.Key), tarn.Version(bad.Version)
		if slices.ContainsFunc(changes, func(c tarn.Change[T]) bool { return c.Key == key && c.Version == version }) {
			found = append(found, tarn.BadObject{Key: key, Version: version, Err: errors.New(bad.Error)})
		}
	}
	return found, err
}

// epochOf is the epoch of the source, if it has one for all sections.
func epochOf(positions []tarn.Position) string {
	if len(positions) == 0 {
		return ""
	}
	for _, p := range positions[1:] {
		if p.Epoch != positions[0].Epoch {
			return ""
		}
	}
	return positions[0].Epoch
}

func numeric(v tarn.Version) bool {
	_, is := v.Compare(v)
	return is
}

// inVersionOrder sorts changes by their versions, as the source made them, if that keeps the
// order of the changes of each key. The changes of a comparison are sorted by key.
func inVersionOrder[T any](changes []tarn.Change[T]) []tarn.Change[T] {
	last := map[tarn.Key]tarn.Version{}
	sorted := true
	for i, c := range changes {
		order, comparable := c.Version.Compare(last[c.Key])
		if c.Rewound || !numeric(c.Version) || last[c.Key] != "" && (!comparable || order < 0) {
			return changes
		}
		last[c.Key] = c.Version
		sorted = sorted && (i == 0 || !c.Version.OlderThan(changes[i-1].Version))
	}
	if sorted {
		return changes
	}
	return slices.SortedStableFunc(slices.Values(changes), func(a, b tarn.Change[T]) int {
		order, _ := a.Version.Compare(b.Version)
		return order
	})
}
