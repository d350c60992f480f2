package tarn_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/story"
	"github.com/tarnproject/tarn/memory"
)

// storyStore is the store of a story: one in memory, which has the content of the
// section "disk" if there is one, or what the setting "store" says.
func storyStore(t *testing.T, s *story.Story, seen *transcript) tarn.Store[*thing] {
	var calls *transcript
	if s.With.Has("calls") {
		calls = seen
	}
	content := memory.New[*thing]()
	if text, ok := s.Section("disk"); ok {
		disk := parseDisk(t, text)
		disk.calls = calls
		if disk.kept.Has("pieces") {
			return &fillStore{diskStore: disk}
		}
		return disk
	}
	switch kind := s.With["store"] + " " + s.With["refuses"]; kind {
	case " ":
		return content
	case "slow ":
		return slowStore{content}
	case "blind ":
		return blindStore{notingStore{content, calls}}
	case "blind resync":
		return failingResync{blindStore{notingStore{content, calls}}}
	case " apply":
		return refusingStore{content}
	default:
		t.Fatalf("no store: %s", kind)
		return nil
	}
}

// notingStore records in the section "calls" how it is called.
type notingStore struct {
	tarn.ReadStore[*thing]
	calls *transcript
}

func (s *notingStore) note(call string, at tarn.Position, objects []string) {
	if s.calls == nil {
		return
	}
	line := fmt.Sprintf("%s at %s", call, at.Version)
	if !at.Complete {
		line += ", incomplete"
	}
	if at.Epoch != "" {
		line += ", epoch " + at.Epoch
	}
	if len(objects) > 0 {
		line += ": " + strings.Join(objects, ", ")
	}
	s.calls.add("calls", line)
}

func (s *notingStore) Replace(items []tarn.Item[*thing], at tarn.Position) error {
	var objects []string
	for _, item := range items {
		objects = append(objects, item.Object.String())
	}
	s.note("replace", at, objects)
	return s.ReadStore.Replace(items, at)
}

var changeNames = map[tarn.ChangeType]string{tarn.Add: "add ", tarn.Update: "update ", tarn.Delete: "delete "}

func (s *notingStore) Apply(changes []tarn.Change[*thing], at tarn.Position) error {
	var objects []string
	for _, c := range changes {
		what := string(c.Key) + " (final state unknown)"
		if c.Object != nil {
			what = c.Object.String()
		}
		objects = append(objects, changeNames[c.Type]+what)
	}
	s.note("apply", at, objects)
	return s.ReadStore.Apply(changes, at)
}

// blindStore cannot be asked what it has; it only takes writes.
type blindStore struct{ notes notingStore }

func (s blindStore) Replace(items []tarn.Item[*thing], at tarn.Position) error {
	return s.notes.Replace(items, at)
}

func (s blindStore) Apply(changes []tarn.Change[*thing], at tarn.Position) error {
	return s.notes.Apply(changes, at)
}

// failingResync is a store whose resync fails.
type failingResync struct{ blindStore }

func (failingResync) Resync() error { return errors.New("no resync") }

// slowStore takes longer for each change than a watch may be silent; refusingStore
// takes nothing.
type (
	slowStore     struct{ *memory.Store[*thing] }
	refusingStore struct{ *memory.Store[*thing] }
)

func (s slowStore) Apply(c []tarn.Change[*thing], at tarn.Position) error {
	time.Sleep(160 * time.Second)
	return s.Store.Apply(c, at)
}

func (refusingStore) Apply([]tarn.Change[*thing], tarn.Position) error {
	return errors.New("disk full")
}

// diskStore is a store with content from a process before, whose last contact with
// its source was 42 s ago.
type diskStore struct {
	notingStore
	kept *story.Answer
	err  error
	// positions are those of sections, if it has several.
	positions []tarn.Position
}

// parseDisk reads a section "disk": content as the answer to a list has it, with
// the words "other" if it is of another source and "incomplete" if it lacks
// something; or "none".
func parseDisk(t *testing.T, text string) *diskStore {
	t.Helper()
	kept, err := story.ParseAnswer(strings.TrimSpace(text), true)
	if err != nil {
		t.Fatal(err)
	}
	return &diskStore{notingStore: notingStore{ReadStore: memory.New[*thing]()}, kept: kept}
}

func (d *diskStore) Restore(context.Context) (tarn.Kept, error) {
	if d.err != nil || d.kept.Has("none") {
		return tarn.Kept{}, d.err
	}
	var changes []tarn.Change[*thing]
	for _, item := range d.kept.Parts {
		o := parseThing(item)
		changes = append(changes, tarn.Change[*thing]{Type: tarn.Add, Key: tarn.Key(o.name), Object: o})
	}
	positions := d.positions
	if positions == nil {
		positions = []tarn.Position{{Version: tarn.Version(d.kept.Version()), Complete: !d.kept.Has("incomplete")}}
	}
	kept := tarn.Kept{Positions: positions, LastContact: time.Now().Add(-42 * time.Second)}
	if d.kept.Has("other") {
		kept.Confirm = func(context.Context) error { return tarn.ErrOtherSource }
	}
	for _, p := range positions {
		if err := d.ReadStore.Apply(changes, p); err != nil {
			return kept, err
		}
		changes = nil
	}
	return kept, nil
}

func (d *diskStore) Disk() tarn.SinkHealth { return tarn.SinkHealth{Version: d.Version()} }

// fillStore is a disk that takes its first state in pieces. It refuses one that has
// "refused" in it, cannot write "unwritable", and finds out at the end that it could
// not write "late".
type fillStore struct {
	*diskStore
	filled map[tarn.Key]tarn.Change[*thing]
}

func (d *fillStore) Fill(changes []tarn.Change[*thing], first bool) error {
	if first {
		d.filled = map[tarn.Key]tarn.Change[*thing]{}
	}
	var bad tarn.ObjectErrors
	for _, c := range changes {
		switch {
		case c.Type == tarn.Delete:
			delete(d.filled, c.Key)
		case c.Key == "refused":
			return errors.New("the disk is full")
		case c.Key == "unwritable":
			bad = append(bad, tarn.BadObject{Key: c.Key, Err: errors.New("cannot be written")})
		default:
			d.filled[c.Key] = c
		}
	}
	if bad != nil {
		return bad
	}
	return nil
}

func (d *fillStore) Filled(at tarn.Position) error {
	var all []tarn.Change[*thing]
	for _, key := range slices.Sorted(maps.Keys(d.filled)) {
		all = append(all, d.filled[key])
	}
	d.filled = nil
	if err := d.Apply(all, at); err != nil {
		return err
	}
	if _, ok := d.Get("late"); ok {
		return tarn.ObjectErrors{{Key: "late", Err: errors.New("cannot be written")}}
	}
	return nil
}
