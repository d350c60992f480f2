package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/tarnproject/tarn"
)

// Commit writes a batch.
func (s *Sink[T]) Commit(ctx context.Context, b tarn.Batch[T]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.own(ctx); err != nil {
		return s.explain("write to", err)
	}
	w, err := s.writing(ctx, b)
	if err != nil {
		return s.explain("write to", err)
	}
	if w == nil {
		return nil
	}
	s.pending = w.id
	if err := s.writeParts(ctx, w); err != nil {
		return s.explain("write to", err)
	}
	s.pending = commitID{}
	s.bad = w.bad
	if len(w.errors) > 0 {
		return w.errors
	}
	return nil
}

// writing is a commit on its way.
type writing struct {
	id commitID
	// marks are written after the objects: gaps, and objects that cannot be kept. skip is how
	// many messages are there already.
	objects, marks []message
	skip           int
	// last is the checkpoint of the commit's end.
	last   Checkpoint
	bad    map[tarn.Key]tarn.Version
	errors tarn.ObjectErrors
}

// writing decides what must be written for a batch; nil if everything is there.
//
// After a failure the checkpoint tells whether the commit took effect, and how much of it. A
// batch that comes again as it was continues where it ended. Any other one is compared with
// the bucket, as is one with content that may be there already.
func (s *Sink[T]) writing(ctx context.Context, b tarn.Batch[T]) (*writing, error) {
	begun := s.pending.id != "" && s.at.Commit == s.pending.id
	resumes := begun && b.Again && !s.pending.compared
	if begun && b.Again && !s.at.Incomplete {
		s.pending = commitID{}
		return nil, nil
	}
	w := &writing{id: commitID{id: nuid.Next()}}
	changes := inVersionOrder(b.Changes)
	var held map[tarn.Key]state
	if b.Whole || begun && !resumes || slices.ContainsFunc(changes, func(c tarn.Change[T]) bool { return c.Rewound }) {
		var err error
		if held, err = s.heldOf(ctx, b.Whole, changes); err != nil {
			return nil, err
		}
		w.id.compared = true
	}
	if resumes {
		w.id, w.skip = s.pending, s.at.Written
	}
	s.encode(w, b, changes, held)
	next := &w.last
	*next = s.at.Checkpoint
	next.Positions, next.LastContact = checkpointPositions(b.Positions), b.LastContact
	next.Incomplete, next.Commit, next.Released = false, w.id.id, false
	if len(b.Gaps) > 0 || w.id.compared || slices.ContainsFunc(changes, func(c tarn.Change[T]) bool { return c.Missed }) {
		next.Line = nuid.Next()
	}
	return w, s.addMarks(w, b)
}

// encode makes the messages of the objects. With held, those that the bucket has are left
// out, and what is not in a whole batch is deleted.
func (s *Sink[T]) encode(w *writing, b tarn.Batch[T], changes []tarn.Change[T], held map[tarn.Key]state) {
	epoch := epochOf(b.Positions)
	w.bad = map[tarn.Key]tarn.Version{}
	if !b.Whole {
		for key, version := range s.bad {
			w.bad[key] = version
		}
	}
	if b.Whole {
		for _, c := range inferredDeletes(changes, held) {
			m, _ := s.object(c, epoch) // a delete has nothing that could fail but a key, which is there
			w.objects = append(w.objects, m)
		}
	}
	var messages []message
	var keys []tarn.Key
	has := map[tarn.Key]int{} // the last message of a key that the bucket has, and how many
	seen := map[tarn.Key]bool{}
	for i, made := range s.makeObjects(changes, epoch) {
		c, m := changes[i], made.message
		if err := made.err; err != nil {
			w.errors = append(w.errors, tarn.BadObject{Key: c.Key, Version: c.Version, Err: err})
			w.bad[c.Key] = c.Version
			continue
		}
		delete(w.bad, c.Key)
		messages, keys = append(messages, m), append(keys, c.Key)
		if held != nil && isThere(held[c.Key], c, m, !seen[c.Key]) {
			has[c.Key] = len(messages)
		}
		seen[c.Key] = true
	}
	for i, m := range messages {
		if i >= has[keys[i]] {
			w.objects = append(w.objects, m)
		}
	}
}

// made is the message of a change, or why there is none.
type made struct {
	message
	err error
}

// fewObjects is how many objects are encoded by one goroutine at least.
const fewObjects = 64

// makeObjects makes the messages of changes, on all processors: encoding takes longer than
// publishing.
func (s *Sink[T]) makeObjects(changes []tarn.Change[T], epoch string) []made {
	all := make([]made, len(changes))
	var working sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(changes)/fewObjects+1)
	for w := range workers {
		working.Go(func() {
			for i := len(changes) * w / workers; i < len(changes)*(w+1)/workers; i++ {
				all[i].message, all[i].err = s.object(changes[i], epoch)
			}
		})
	}
	working.Wait()
	return all
}

// isThere says whether a change is what the bucket has of its key. A delete is also if there
// is nothing to delete.
func isThere[T any](is state, c tarn.Change[T], m message, first bool) bool {
	absent := is.deleted || is.Key == ""
	if c.Type == tarn.Delete {
		return absent && (first || is.deleted && is.Version == c.Version)
	}
	return !absent && is.digest == m.header.Get(HeaderDigest)
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

// addMarks adds the messages of gaps, and of objects that became bad or are no longer.
func (s *Sink[T]) addMarks(w *writing, b tarn.Batch[T]) error {
	add := func(key string, header nats.Header, content any) error {
		data, err := json.Marshal(content)
		if err != nil {
			return err
		}
		w.marks = append(w.marks, message{s.bucket.prefix() + key, header, data})
		return nil
	}
	for _, g := range b.Gaps {
		w.last.Gaps++
		gap := Gap{w.last.Gaps, g.Section, string(g.From), string(g.To), string(g.Cause), b.LastContact}
		if err := add(gapKey(gap.Number), nats.Header{}, gap); err != nil {
			return err
		}
	}
	for _, e := range w.errors {
		if version, known := s.bad[e.Key]; known && version == e.Version || len(escapeKey(e.Key)) > longestKey || w.bad[e.Key] != e.Version {
			continue
		}
		if err := add(badPrefix+escapeKey(e.Key), nats.Header{}, BadObject{string(e.Key), string(e.Version), e.Err.Error()}); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.bad)) {
		if _, still := w.bad[key]; !still && len(escapeKey(key)) <= longestKey {
			w.marks = append(w.marks, message{s.bucket.prefix() + badPrefix + escapeKey(key), nats.Header{headerOperation: {"PURGE"}, headerRollup: {"sub"}}, nil})
		}
	}
	return nil
}

// writeParts writes a commit in as many atomic batches as it needs.
func (s *Sink[T]) writeParts(ctx context.Context, w *writing) error {
	all := append(w.objects, w.marks...)
	before := s.at.Checkpoint
	if w.skip > len(all) {
		return fmt.Errorf("the checkpoint says that %d messages of a commit are there, and it has %d", w.skip, len(all))
	}
	for done := w.skip; ; {
		n := part(all[done:])
		end := done + n
		next := w.last
		next.Objects, next.Written = s.at.Objects+uint64(max(0, min(end, len(w.objects))-done)), 0
		if end < len(all) {
			next.Positions, next.LastContact, next.Gaps = before.Positions, before.LastContact, before.Gaps
			next.Incomplete, next.Written = true, end
		}
		if err := s.write(ctx, all[done:end:end], next); err != nil || end == len(all) {
			return err
		}
		done = end
	}
}

// part is how many of the messages fit into an atomic batch, beside its checkpoint.
func part(all []message) int {
	bytes := 0
	for i, m := range all {
		bytes += len(m.data)
		if i == maxBatch-1 || i > 0 && bytes > maxBatchBytes {
			return i
		}
	}
	return len(all)
}

// loadBad reads which objects could not be written.
func (s *Sink[T]) loadBad(ctx context.Context) error {
	stream, err := s.js.Stream(ctx, s.bucket.stream())
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(s.bucket.prefix()+badPrefix+">"))
	if err != nil {
		return err
	}
	s.bad = map[tarn.Key]tarn.Version{}
	for subject := range info.State.Subjects {
		r, found, err := s.last(ctx, strings.TrimPrefix(subject, s.bucket.prefix()))
		if err != nil {
			return err
		}
		var bad BadObject
		if found && len(r.data) > 0 && json.Unmarshal(r.data, &bad) == nil {
			s.bad[tarn.Key(bad.Key)] = tarn.Version(bad.Version)
		}
	}
	return nil
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
