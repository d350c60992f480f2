package logtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// A Subject is one log.
type Subject struct {
	Sink tarn.Sink[Object]
	Log  changelog.Log
	// Reopen, if it is set, ends the process that writes and begins the next one.
	Reopen func() Subject
	// Bounded says that the log keeps only a part of what the suite commits. By its clock,
	// the suite takes a minute or two.
	Bounded bool
}

// Run checks the logs that newSubject makes, each with a random history of its own. They
// must encode objects by [Append], tell their uids, and, unless they are bounded, keep
// everything that the suite commits.
func Run(t *testing.T, histories int, newSubject func(t *testing.T) Subject) {
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint("history ", seed), func(t *testing.T) { play(t, newSubject(t), seed) })
	}
	t.Run("an empty log", func(t *testing.T) {
		s := newSubject(t)
		if _, err := s.Log.AtTime(t.Context(), time.Now()); !errors.Is(err, changelog.ErrAhead) {
			t.Errorf("a place in an empty log: %v, want ErrAhead", err)
		}
	})
}

const steps = 50

// play commits a random history, with gaps, whole states, rewinds and clock jumps, and
// asks.
func play(t *testing.T, s Subject, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	p := &player{random: random, clock: time.UnixMilli(1_780_000_000_000), version: 100}
	var m model
	if _, err := s.Sink.Open(t.Context(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for step := range steps {
		b := p.batch(step == 0)
		m.commit(b)
		if err := s.Sink.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if s.Reopen != nil && random.IntN(8) == 0 {
			s = s.Reopen()
			if _, err := s.Sink.Open(t.Context(), func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if random.IntN(5) == 0 || step == steps-1 {
			ask(t, s, &m, p)
		}
		if t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
}

// player makes batches.
type player struct {
	random  *rand.Rand
	clock   time.Time
	version int
	epoch   int
	objects map[tarn.Key]Object
	births  int
}

func (p *player) tick() time.Time {
	switch p.random.IntN(60) {
	case 0:
		p.clock = p.clock.Add(-time.Duration(p.random.IntN(20_000)) * time.Millisecond)
	case 1:
		p.clock = p.clock.Add(time.Duration(p.random.IntN(60_000)) * time.Millisecond)
	default:
		p.clock = p.clock.Add(time.Duration(p.random.IntN(300)) * time.Millisecond)
	}
	return p.clock
}

// change makes the next change of an object.
func (p *player) change() tarn.Change[Object] {
	key := tarn.Key(fmt.Sprintf("ns-%d/object-%d", p.random.IntN(2), p.random.IntN(6)))
	p.version += 1 + p.random.IntN(3)
	v := tarn.Version(strconv.Itoa(p.version))
	o, there := p.objects[key]
	c := tarn.Change[Object]{Type: tarn.Update, Key: key, Version: v, Heard: p.tick()}
	switch n := p.random.IntN(10); {
	case there && n < 2:
		c.Type, c.Object, c.Missed = tarn.Delete, o, p.random.IntN(3) == 0
		c.Object.Version = v
		delete(p.objects, key)
		return c
	case !there || n == 2:
		p.births++
		o = Object{Key: key, UID: fmt.Sprint("uid-", p.births), Text: fmt.Sprintf("born %d %s", p.births, filler[:p.random.IntN(len(filler))])}
		if !there {
			c.Type = tarn.Add
		}
	case n < 8:
		text := []byte(o.Text)
		for range 1 + p.random.IntN(3) {
			text[p.random.IntN(len(text))] = byte('a' + p.random.IntN(26))
		}
		o.Text = string(text)
	default:
		o.Text += fmt.Sprint(" and ", p.version)
	}
	o.Version = v
	p.objects[key], c.Object = o, o
	return c
}

var filler = func() string {
	text := ""
	for i := range 60 {
		text += fmt.Sprintf("word %d of an object; ", i*i)
	}
	return text
}()

func (p *player) batch(first bool) (b tarn.Batch[Object]) {
	if first {
		p.objects, b.Whole = map[tarn.Key]Object{}, true
	}
	from := p.version
	for range p.random.IntN(12) {
		b.Changes = append(b.Changes, p.change())
	}
	switch n := p.random.IntN(12); {
	case first:
	case n == 0: // the connection was lost, and the state was read again
		b.Gaps = append(b.Gaps, tarn.Gap{From: tarn.Version(strconv.Itoa(from)), To: tarn.Version(strconv.Itoa(p.version)), Cause: tarn.GapRead})
	case n == 1:
		b.Whole, b.Changes = true, nil
		p.version += 5
		for key, o := range p.objects {
			if p.random.IntN(4) == 0 {
				delete(p.objects, key)
				continue
			}
			b.Changes = append(b.Changes, tarn.Change[Object]{Type: tarn.Add, Key: key, Object: o, Version: o.Version, Heard: p.clock})
		}
	case n == 2: // the server went back
		p.epoch++
		p.version -= p.random.IntN(20)
		b.Gaps = append(b.Gaps, tarn.Gap{From: tarn.Version(strconv.Itoa(from)), To: tarn.Version(strconv.Itoa(p.version)), Cause: tarn.GapRewound})
		for i := range b.Changes {
			b.Changes[i].Rewound = true
		}
	}
	if first && len(b.Changes) > 0 {
		b.Changes = b.Changes[:0]
		for key, o := range p.objects {
			b.Changes = append(b.Changes, tarn.Change[Object]{Type: tarn.Add, Key: key, Object: o, Version: o.Version, Heard: p.clock})
		}
	}
	at := tarn.At(tarn.Version(strconv.Itoa(p.version)))
	if p.epoch > 0 {
		at.Epoch = fmt.Sprint(p.epoch)
	}
	b.Positions, b.LastContact = []tarn.Position{at}, p.tick()
	return b
}

// asked is a log with what it must return.
type asked struct {
	*testing.T
	changelog.Log
	*model
	bounded bool
	since   time.Time
	// horizon is how many entries of the model are before the log, places are those of the
	// horizon and of all entries after it.
	horizon int
	places  []changelog.Seq
}

// ask compares a log with its model.
func ask(t *testing.T, s Subject, m *model, p *player) {
	t.Helper()
	ctx := t.Context()
	bounds, err := s.Log.Bounds(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	got := collect(t, s.Log.After(ctx, bounds.First))
	a := &asked{T: t, Log: s.Log, model: m, bounded: s.Bounded, since: bounds.Since, horizon: len(m.entries) - len(got), places: []changelog.Seq{bounds.First}}
	if a.horizon < m.horizon || a.horizon > m.horizon && !s.Bounded {
		t.Errorf("%d of %d entries are there", len(got), len(m.entries)-m.horizon)
		return
	}
	news := m.entries[a.horizon:]
	same(t, "all after the first state", got, news)
	if t.Failed() {
		return
	}
	for _, e := range got {
		a.places = append(a.places, e.Seq)
	}
	for range 6 {
		n := p.random.IntN(len(a.places))
		place := a.places[n]
		same(t, fmt.Sprint("after ", place), collect(t, a.After(ctx, place)), news[n:])
		same(t, fmt.Sprint("as of ", place), collect(t, a.AsOf(ctx, changelog.Place{Seq: place})), m.asOf(a.horizon+n))
	}
	for _, err := range a.After(ctx, bounds.First-1) {
		if !errors.Is(err, changelog.ErrExpired) {
			t.Errorf("what was before the horizon: %v, want ErrExpired", err)
		}
		break
	}
	for range 12 {
		a.time(p.clock.Add(-time.Duration(p.random.IntN(60_000)) * time.Millisecond))
	}
	for range 4 {
		a.key(tarn.Key(fmt.Sprintf("ns-%d/object-%d", p.random.IntN(2), p.random.IntN(6))))
	}
	if _, err := a.AtVersion(ctx, tarn.Version(strconv.Itoa(p.version+1))); !errors.Is(err, changelog.ErrAhead) {
		t.Errorf("a version that was not reached: %v, want ErrAhead", err)
	}
	last := a.places[len(a.places)-1]
	if place, err := a.AtVersion(ctx, m.version); err != nil || place.Seq != last {
		t.Errorf("the present version is at %v (%v), want %d", place, err, last)
	}
}

// time compares the place of a time.
func (a *asked) time(at time.Time) {
	a.Helper()
	n := -1
	if !at.Before(a.since) {
		n = a.horizon
	}
	for i, e := range a.entries {
		if i >= a.horizon && !e.Heard.After(at) {
			n = i + 1
		}
	}
	place, err := a.AtTime(a.Context(), at)
	switch {
	case n < 0 && !errors.Is(err, changelog.ErrExpired):
		a.Errorf("a time before the log: %v, want ErrExpired", err)
	case n < 0:
	case err != nil || place.Seq != a.places[n-a.horizon]:
		a.Errorf("%s is at %v (%v), want %d", at.Format(time.StampMilli), place, err, a.places[n-a.horizon])
	default:
		if want := a.gapsAt(at, a.horizon); len(want) > len(place.Gaps) || len(want) < len(place.Gaps) && !a.bounded {
			a.Errorf("%s is in the gaps %v, want %v", at.Format(time.StampMilli), place.Gaps, want)
		}
	}
}

// key compares the history of one key: from the state on that was valid at the horizon.
func (a *asked) key(key tarn.Key) {
	a.Helper()
	var want []changelog.Entry
	for _, e := range a.asOf(a.horizon) {
		if e.Key == key {
			want = append(want, e)
		}
	}
	for _, e := range a.entries[a.horizon:] {
		if e.Gap == nil && e.Key == key || e.Gap != nil && len(want) > 0 {
			want = append(want, e)
		}
	}
	got := collect(a.T, a.Of(a.Context(), key))
	if a.bounded { // it may know of gaps that lie before its horizon
		got, want = states(got), states(want)
	}
	same(a.T, "the history of "+string(key), got, want)
}

func states(all []changelog.Entry) (states []changelog.Entry) {
	for _, e := range all {
		if e.Gap == nil {
			states = append(states, e)
		}
	}
	return states
}

func collect(t *testing.T, walk iter.Seq2[changelog.Entry, error]) (all []changelog.Entry) {
	t.Helper()
	for e, err := range walk {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
			return all
		}
		all = append(all, e)
	}
	return all
}

// same compares entries except for their numbers.
func same(t *testing.T, what string, got, want []changelog.Entry) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = show(got[i])
		}
		if i < len(want) {
			w = show(want[i])
		}
		if g != w {
			t.Errorf("%s: entry %d of %d is\n  %s, want\n  %s", what, i, len(want), g, w)
			return
		}
	}
}

func show(e changelog.Entry) string {
	if e.Gap != nil {
		return fmt.Sprintf("gap %s %s %s to %s, %d to %d", e.Gap.Section, e.Gap.Cause, e.Gap.From, e.Gap.To, e.Gap.Since.UnixMilli(), e.Gap.Until.UnixMilli())
	}
	until := int64(0)
	if !e.Until.IsZero() {
		until = e.Until.UnixMilli()
	}
	return fmt.Sprintf("%s %s %q at %q heard %d until %d: %s", e.Operation, e.Key, e.UID, e.Version, e.Heard.UnixMilli(), until, e.Object)
}
