package tarn

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeSink is a sink in memory. It outlives the replicas that it is attached to, and
// records each batch that it committed.
type fakeSink struct {
	policy SinkPolicy[*entry]
	// refuse, if set, is asked before a commit, opening before an Open. lost, if set, is
	// asked after a commit took effect.
	refuse, lost func(context.Context, Batch[*entry]) error
	opening      func(context.Context) error
	// confirm is [Kept.Confirm] of what was opened.
	confirm func(context.Context) error

	mu        sync.Mutex
	has       map[Key]*entry
	positions Positions
	contact   time.Time
	batches   []string
	flush     func() error
	opens     int
	closes    int
}

func newFakeSink(p SinkPolicy[*entry]) *fakeSink {
	return &fakeSink{policy: p, has: map[Key]*entry{}}
}

func (s *fakeSink) Policy() SinkPolicy[*entry] { return s.policy }

func (s *fakeSink) Open(ctx context.Context, flush func() error) (Kept, error) {
	s.mu.Lock()
	s.opens++
	s.mu.Unlock()
	if s.opening != nil {
		if err := s.opening(ctx); err != nil {
			return Kept{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush = flush
	return Kept{Positions: s.positions.All(), LastContact: s.contact, Confirm: s.confirm}, nil
}

func (s *fakeSink) Commit(ctx context.Context, b Batch[*entry]) error {
	s.mu.Lock()
	refuse := s.refuse
	s.mu.Unlock()
	if refuse != nil {
		if err := refuse(ctx, b); err != nil {
			return err
		}
	}
	s.take(b)
	if s.lost != nil {
		return s.lost(ctx, b)
	}
	return nil
}

// allow lets commits succeed again.
func (s *fakeSink) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = nil
}

func (s *fakeSink) take(b Batch[*entry]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Whole {
		clear(s.has)
	}
	for _, c := range b.Changes {
		if c.Type == Delete {
			delete(s.has, c.Key)
		} else {
			s.has[c.Key] = c.Object
		}
	}
	s.positions, s.contact = Positions{}, b.LastContact
	for _, p := range b.Positions {
		s.positions.Move(p)
	}
	s.batches = append(s.batches, showBatch(b))
}

func (s *fakeSink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closes++
}

// state is what the sink holds.
func (s *fakeSink) state() map[Key]*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.has)
}

// heard returns what was committed since its last call, one line for each batch.
func (s *fakeSink) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Join(s.batches, "\n")
	s.batches = nil
	return lines
}

// wantHeard compares what was committed since it was last asked.
func (s *fakeSink) wantHeard(t *testing.T, want ...string) {
	t.Helper()
	if got := s.heard(); got != strings.Join(want, "\n") {
		t.Errorf("the %s committed\n%s\nwant\n%s", s.policy.Name, indent(got), indent(strings.Join(want, "\n")))
	}
}

// wantState compares what the sink holds with a collection.
func (s *fakeSink) wantState(t *testing.T, r *remote) {
	t.Helper()
	if has, want := s.state(), r.state(); !maps.EqualFunc(has, want, func(a, b *entry) bool { return *a == *b }) {
		t.Errorf("the %s holds %v, want %v", s.policy.Name, has, want)
	}
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// showBatch writes a batch as text, the changes of a comparison by key:
//
//	whole +a1 ~b2 !b2 -c @3 (after 2 to 3 read anew)
//
// where !b2 is an update with Rewound, @3' a position of a later epoch, and @3? one that
// is not complete.
func showBatch(b Batch[*entry]) string {
	var words []string
	for _, c := range b.Changes {
		switch {
		case c.Type == Delete:
			words = append(words, "-"+string(c.Key))
		case c.Rewound:
			words = append(words, "!"+c.Object.String())
		case c.Type == Update:
			words = append(words, "~"+c.Object.String())
		default:
			words = append(words, "+"+c.Object.String())
		}
		if c.Old != nil {
			words = append(words, "(Old is set)")
		}
	}
	if b.Whole {
		words = append([]string{"whole"}, words...)
	}
	for _, p := range b.Positions {
		word := p.Section + "@" + string(p.Version)
		if p.Epoch != "" {
			word += "'"
		}
		if !p.Complete {
			word += "?"
		}
		words = append(words, word)
	}
	for _, g := range b.Gaps {
		section := g.Section
		if section != "" {
			section += " "
		}
		words = append(words, fmt.Sprintf("(%safter %s to %s %s)", section, g.From, g.To, g.Cause))
	}
	return strings.Join(words, " ")
}

// listedSink is one that can say what it holds.
type listedSink struct{ *fakeSink }

func (s listedSink) Held(context.Context) iter.Seq2[Meta, error] {
	return func(yield func(Meta, error) bool) {
		state := s.state()
		for _, key := range slices.Sorted(maps.Keys(state)) {
			if e := state[key]; !yield(Meta{Key: key, Version: e.version, UID: e.uid}, nil) {
				return
			}
		}
	}
}

// loadedSink is one that a replica can be loaded from.
type loadedSink struct {
	*fakeSink
	loading error
}

func (s loadedSink) Load(context.Context) ([]Change[*entry], error) {
	if s.loading != nil {
		return nil, s.loading
	}
	state := s.state()
	var all []Change[*entry]
	for _, key := range slices.Sorted(maps.Keys(state)) {
		all = append(all, Change[*entry]{Type: Add, Key: key, Object: state[key], Version: state[key].version})
	}
	return all, nil
}

// attached runs a replica with sinks for one life.
func attached(t *testing.T, r *remote, sinks ...Sink[*entry]) *copying {
	t.Helper()
	return newCopy(t, r, Options[*entry]{Sinks: sinks, Logger: slog.New(slog.DiscardHandler)}).start()
}

// restore takes a collection back to objects that it had, at a version.
func (r *remote) restore(now int, objects map[Key]*entry) {
	r.compact()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.compacted = now, now
	clear(r.objects)
	for key, e := range objects {
		r.objects[string(key)] = e
	}
	r.epoch++
	r.wake()
}
