package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// modelSink is what a sink holds beyond the process, with the history of its commits.
type modelSink struct {
	name   string
	day    *day
	random *rand.Rand
	policy tarn.SinkPolicy[*Object]
	// lists and loads say which abilities it has.
	lists, loads bool
	// slow is how long a commit takes at most. From awayFrom to awayUntil the sink
	// neither opens nor commits. clumsy is how many of a hundred commits go wrong.
	slow                time.Duration
	awayFrom, awayUntil time.Time
	clumsy              int
	moment              time.Duration

	mu       sync.Mutex
	content  State
	position tarn.Position
	// offered is the version of the last batch, which may still take effect.
	offered tarn.Version
	contact time.Time
	// commits are those that took effect.
	commits []commit
}

// commit is one that took effect.
type commit struct {
	life     int
	from, to tarn.Position
	// before is the content until then.
	before State
	batch  tarn.Batch[*Object]
}

// newSinks draws the sinks of a day.
func (d *day) newSinks() (sinks []*modelSink) {
	random := d.chance("sinks")
	for i := range 1 + random.IntN(3) {
		name := fmt.Sprintf("sink %d", i)
		s := &modelSink{name: name, day: d, random: d.chance(name), content: State{}, lists: random.IntN(2) == 0}
		s.policy = tarn.SinkPolicy[*Object]{Name: name, EveryState: random.IntN(3) > 0}
		if random.IntN(2) == 0 {
			s.policy.Delay = time.Duration(random.Int64N(int64(10 * time.Second)))
		}
		if s.policy.EveryState && random.IntN(2) == 0 {
			s.policy.MaxBytes = 1 + random.Int64N(6)
		} else {
			s.policy.MaxBytes = 1 << 20
		}
		s.policy.SizeOf = func(tarn.Change[*Object]) int { return 1 }
		if random.IntN(2) == 0 {
			s.slow = time.Duration(random.Int64N(int64(40 * time.Second)))
		}
		if random.IntN(2) == 0 {
			s.awayFrom = time.Now().Add(time.Duration(random.Int64N(int64(length))) - length/10)
			s.awayUntil = s.awayFrom.Add(time.Duration(random.Int64N(int64(length / 2))))
		}
		s.clumsy, s.moment = random.IntN(20), time.Duration(i+1)*37*time.Microsecond
		s.loads = i == 0 && random.IntN(2) == 0
		sinks = append(sinks, s)
	}
	return sinks
}

// seen are the versions that the sink has or may still take.
func (s *modelSink) seen() []tarn.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []tarn.Version{s.position.Version, s.offered}
}

// attach makes the sink of one life.
func (s *modelSink) attach(l *life) tarn.Sink[*Object] {
	a := &attached{modelSink: s, life: l}
	right := s.day.cfg.Plant.sink(a)
	switch {
	case s.lists && s.loads:
		return struct {
			tarn.Sink[*Object]
			lister
			loader
		}{right, lister{a}, loader{a}}
	case s.lists:
		return struct {
			tarn.Sink[*Object]
			lister
		}{right, lister{a}}
	case s.loads:
		return struct {
			tarn.Sink[*Object]
			loader
		}{right, loader{a}}
	}
	return right
}

// attached is a sink as one life of the process uses it. Once that is dead, nothing has an
// effect any more.
type attached struct {
	*modelSink
	life *life
	// before is the position before the first attempt to commit a batch.
	before tarn.Position
}

var (
	errDead     = errors.New("the process is dead")
	errSinkAway = errors.New("the sink is away")
	errAckLost  = errors.New("the acknowledgement was lost")
)

func (a *attached) Policy() tarn.SinkPolicy[*Object] { return a.policy }

func (a *attached) Open(ctx context.Context, _ func() error) (tarn.Kept, error) {
	if err := a.trouble(ctx); err != nil {
		return tarn.Kept{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := tarn.Kept{LastContact: a.contact}
	if a.position != (tarn.Position{}) {
		kept.Positions = []tarn.Position{a.position}
	}
	a.day.record.note(a.name, "opens at %s %v: %s", a.position.Version, a.position.Complete, a.content)
	return kept, nil
}

// chance says whether something happens that does in some of a hundred cases.
func (a *attached) chance(of int) bool { return a.day.troubled() && a.random.IntN(100) < of }

// trouble is why the sink does not answer. Each sink takes a moment of its own, so that
// it does not depend on the scheduler which of them a kill comes before.
func (a *attached) trouble(ctx context.Context) error {
	time.Sleep(a.moment)
	if a.slow > 0 && a.day.troubled() {
		select {
		case <-time.After(time.Duration(a.random.Int64N(int64(a.slow)))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if now := time.Now(); a.day.troubled() && now.After(a.awayFrom) && now.Before(a.awayUntil) {
		return errSinkAway
	}
	return a.life.err()
}

func (a *attached) Commit(ctx context.Context, b tarn.Batch[*Object]) error {
	a.mu.Lock()
	if !b.Again {
		a.before = a.position
	}
	if a.offered = ""; len(b.Positions) > 0 {
		a.offered = b.Positions[0].Version
	}
	a.mu.Unlock()
	if err := a.trouble(ctx); err != nil {
		return err
	}
	switch {
	case a.chance(a.clumsy / 4):
		a.life.kill(a.name + " has not committed")
		return errDead
	case a.chance(a.clumsy / 8):
		a.lose()
		return tarn.ErrSinkEmpty
	case a.chance(a.clumsy):
		return errSinkAway
	}
	a.take(b)
	switch {
	case a.chance(a.clumsy / 4):
		a.life.kill(a.name + " has committed")
		return errDead
	case a.chance(a.clumsy):
		return errAckLost
	}
	return nil
}

// lose empties the sink.
func (a *attached) lose() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.day.record.note(a.name, "loses its content")
	a.content, a.position, a.commits = State{}, tarn.Position{}, append(a.commits, commit{})
}

// take lets a batch take effect, unless it has.
func (a *attached) take(b tarn.Batch[*Object]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var to tarn.Position // stays empty for an incomplete state without a version
	if len(b.Positions) > 0 {
		to = b.Positions[0]
	}
	if b.Again && to.Version != "" && to != a.before && to == a.position {
		return
	}
	b.Changes, b.Gaps = slices.Clone(b.Changes), slices.Clone(b.Gaps) // the engine uses its own again
	a.commits = append(a.commits, commit{a.life.number, a.position, to, a.content, b})
	next := maps.Clone(a.content)
	if b.Whole {
		next = State{}
	}
	for _, c := range b.Changes {
		if c.Type == tarn.Delete {
			delete(next, c.Key)
		} else {
			next[c.Key] = c.Object
		}
	}
	a.content, a.position, a.contact = next, to, b.LastContact
	a.day.record.note(a.name, "commits %s, now at %s %q %v: %s", showChanges(b), to.Version, to.Epoch, to.Complete, next)
	a.day.judgePair(a.name, to, next)
}

func showChanges(b tarn.Batch[*Object]) string {
	text := ""
	if b.Whole {
		text = "whole "
	}
	for _, c := range b.Changes {
		text += fmt.Sprintf("%s %s@%s ", changeNames[c.Type], c.Key, c.Version)
	}
	for _, g := range b.Gaps {
		text += fmt.Sprintf("gap %s ", g)
	}
	return text
}

func (a *attached) Close() {}

// lister and loader are abilities that not every sink has.
type lister struct{ a *attached }

func (l lister) Held(ctx context.Context) iter.Seq2[tarn.Meta, error] {
	return func(yield func(tarn.Meta, error) bool) {
		a := l.a
		if err := a.trouble(ctx); err != nil {
			yield(tarn.Meta{}, err)
			return
		}
		a.mu.Lock()
		content := a.content
		a.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(content)) {
			if a.chance(a.clumsy / 8) {
				a.life.kill(a.name + " was being listed")
				yield(tarn.Meta{}, errDead)
				return
			}
			if o := content[key]; !yield(tarn.Meta{Key: key, Version: o.Version, UID: o.UID}, nil) {
				return
			}
		}
	}
}

type loader struct{ a *attached }

func (l loader) Load(ctx context.Context) (all []tarn.Change[*Object], err error) {
	if err := l.a.trouble(ctx); err != nil {
		return nil, err
	}
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.a.content)) {
		o := l.a.content[key]
		all = append(all, tarn.Change[*Object]{Type: tarn.Add, Key: key, Object: o, Version: o.Version})
	}
	return all, nil
}
