package sinktest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

func TestModelPasses(t *testing.T) {
	Run(t, func(*testing.T) Subject { return subject(fault{}) })
}

// A sink that can neither list nor load, and shows its content otherwise, passes too.
func TestPlainSinkPasses(t *testing.T) {
	Run(t, func(*testing.T) Subject {
		s := subject(fault{})
		inner := s.Open
		s.Open = func() tarn.Sink[Object] { return struct{ tarn.Sink[Object] }{inner()} }
		s.Gaps = nil
		return s
	})
}

// recorder is a reporter that keeps what it receives.
type recorder struct{ errors []string }

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

type (
	batch  = tarn.Batch[Object]
	edited = tarn.Change[Object]
)

// keep leaves out changes of a batch.
func keep(fits func(*disk, edited) bool) func(*disk, batch) batch {
	return func(d *disk, b batch) batch {
		b.Changes = slices.DeleteFunc(slices.Clone(b.Changes), func(c edited) bool { return !fits(d, c) })
		return b
	}
}

// everyPosition edits the positions of a batch.
func everyPosition(edit func(*tarn.Position)) func(*disk, batch) batch {
	return func(_ *disk, b batch) batch {
		b.Positions = slices.Clone(b.Positions)
		for i := range b.Positions {
			edit(&b.Positions[i])
		}
		return b
	}
}

// Each of these sinks breaks one line of the contract, and must be found.
func TestBrokenSinksAreFound(t *testing.T) {
	for _, broken := range []struct {
		name  string
		fault fault
		check string
		says  string
	}{
		{"loses deletes", fault{batch: keep(func(_ *disk, c edited) bool { return c.Type != tarn.Delete })},
			"what was committed is there with its position", `"ns/b" is there`},
		{"deletes last", fault{batch: func(_ *disk, b batch) batch {
			b.Changes = slices.Clone(b.Changes)
			slices.SortStableFunc(b.Changes, func(x, y edited) int { return int(x.Type/tarn.Delete) - int(y.Type/tarn.Delete) })
			return b
		}}, "the changes of one key take effect in their order", `"a" is missing`},
		{"merges a whole batch", fault{batch: func(_ *disk, b batch) batch { b.Whole = false; return b }},
			"a whole batch removes everything else", `"gone" is there`},
		{"ignores batches without changes", fault{batch: func(d *disk, b batch) batch {
			if len(b.Changes) == 0 {
				b.Positions = d.positions
			}
			return b
		}}, "a batch without changes moves the position", `want [{Section: Epoch: Version:5`},
		{"updates only what is there", fault{batch: keep(func(d *disk, c edited) bool {
			_, there := d.objects[c.Key]
			return c.Type != tarn.Update || there
		})}, "a change may be of a key that is there, or is not", `"b" is missing`},
		{"forgets its positions", fault{open: func(_ *disk, k tarn.Kept) tarn.Kept { k.Positions = nil; return k }},
			"what was committed is there with its position", "positions []"},
		{"drops the epoch", fault{batch: everyPosition(func(p *tarn.Position) { p.Epoch = "" })},
			"a position is kept as it is", "Epoch:2026"},
		{"believes to be complete", fault{batch: everyPosition(func(p *tarn.Position) { p.Complete = true })},
			"a position is kept as it is", "Complete:false"},
		{"trims versions", fault{batch: everyPosition(func(p *tarn.Position) { p.Version = tarn.Version(strings.TrimLeft(string(p.Version), "0")) })},
			"a position is kept as it is", "Version:007"},
		{"keeps a section that is gone", fault{batch: func(d *disk, b batch) batch {
			for _, p := range d.positions {
				if !slices.ContainsFunc(b.Positions, func(x tarn.Position) bool { return x.Section == p.Section }) {
					b.Positions = append(slices.Clone(b.Positions), p)
				}
			}
			return b
		}}, "each section has its position", "after batch 5: Open returned the positions"},
		{"has one position", fault{batch: func(_ *disk, b batch) batch { b.Positions = b.Positions[:min(1, len(b.Positions))]; return b }},
			"each section has its position", "Section:two"},
		{"knows the time of the commit only", fault{batch: func(_ *disk, b batch) batch { b.LastContact = time.Now(); return b }},
			"when the source was heard is kept", "the source was heard at"},
		{"folds case", fault{batch: func(_ *disk, b batch) batch {
			b.Changes = slices.Clone(b.Changes)
			for i := range b.Changes {
				b.Changes[i].Key = tarn.Key(strings.ToLower(string(b.Changes[i].Key)))
			}
			return b
		}}, "keys and texts are kept apart, whatever is in them", `"A" is missing`},
		{"takes a thousand changes at most", fault{batch: func(_ *disk, b batch) batch { b.Changes = b.Changes[:min(1000, len(b.Changes))]; return b }},
			"a batch may be large", "and 1988 more"},
		{"forgets gaps", fault{batch: func(_ *disk, b batch) batch { b.Gaps = nil; return b }},
			"gaps are kept", "the gaps are []"},
		{"refuses what it has", fault{batch: func(d *disk, b batch) batch {
			b.Whole = b.Whole && len(d.positions) == 0
			return b
		}, after: func(d *disk, b batch) error {
			if slices.Equal(d.positions, b.Positions) && len(d.gaps) > 1 {
				return errors.New("a duplicate key")
			}
			return nil
		}}, "the same batch again changes nothing", "a duplicate key"},
		{"appends a batch that comes again", fault{after: func(d *disk, b batch) error {
			for _, c := range b.Changes {
				if o, there := d.objects[c.Key]; there && len(d.gaps) > 1 {
					o.Text += " and again"
					d.objects[c.Key] = o
				}
			}
			return nil
		}}, "the same batch again changes nothing", "and again"},
		{"drops the version that it has", fault{batch: keep(func(d *disk, c edited) bool {
			o, there := d.objects[c.Key]
			return !there || o.Version != c.Version || c.Type == tarn.Delete
		})}, "rewound content is taken under the same version, and under an older one", "other content"},
		{"drops older versions", fault{batch: keep(func(d *disk, c edited) bool { return !c.Version.OlderThan(d.objects[c.Key].Version) })},
			"rewound content is taken under the same version, and under an older one", "older content"},
		{"writes half of it", fault{ended: func(d *disk, b batch) {
			b.Changes, b.Positions = b.Changes[:len(b.Changes)/2], d.positions
			d.take(b)
		}}, "a commit whose context has ended leaves all or nothing", "neither as a whole nor not at all"},
		{"writes the position first", fault{ended: func(d *disk, b batch) { d.positions = b.Positions }},
			"a commit whose context has ended leaves all or nothing", "neither as a whole nor not at all"},
		{"writes the position last", fault{ended: func(d *disk, b batch) { b.Positions = d.positions; d.take(b) }},
			"a commit whose context has ended leaves all or nothing", "neither as a whole nor not at all"},
		{"keeps slices", fault{after: func(d *disk, b batch) error { d.positions = b.Positions; return nil }},
			"the slices of a batch are not kept", "Version:9"},
		{"lists too few", fault{held: func(m tarn.Meta) (tarn.Meta, bool) { return m, m.Key != "c" }},
			"what was committed is there with its position", "Held has the wrong content"},
		{"lists other versions", fault{held: func(m tarn.Meta) (tarn.Meta, bool) { m.Version += "0"; return m, true }},
			"what was committed is there with its position", "Held has the wrong content"},
		{"loads too few", fault{load: func(all []edited) []edited { return all[:len(all)/2] }},
			"what was committed is there with its position", "Load has the wrong content"},
		{"loads twice", fault{load: func(all []edited) []edited { return append(all, all...) }},
			"what was committed is there with its position", "want one Add for each key"},
		{"begins at a position", fault{open: func(_ *disk, k tarn.Kept) tarn.Kept {
			if len(k.Positions) == 0 {
				k.Positions = []tarn.Position{tarn.At("0")}
			}
			return k
		}}, "a new sink holds nothing", "want []"},
	} {
		t.Run(broken.name, func(t *testing.T) {
			i := slices.IndexFunc(checks, func(c check) bool { return c.name == broken.check })
			if i < 0 {
				t.Fatalf("there is no check %q", broken.check)
			}
			var r recorder
			checks[i].on(&r, subject(broken.fault))
			if len(r.errors) == 0 {
				t.Fatalf("the check %q let it pass", broken.check)
			}
			if !strings.Contains(strings.Join(r.errors, "\n"), broken.says) {
				t.Errorf("no error says %q:\n%s", broken.says, strings.Join(r.errors, "\n"))
			}
		})
	}
}

// The random check finds what is wrong with any of them.
func TestRandomCheckFindsFaults(t *testing.T) {
	for name, f := range map[string]fault{
		"loses deletes":  {batch: keep(func(_ *disk, c edited) bool { return c.Type != tarn.Delete })},
		"merges a whole": {batch: func(_ *disk, b batch) batch { b.Whole = false; return b }},
		"drops the version that it has": {batch: keep(func(d *disk, c edited) bool {
			o, there := d.objects[c.Key]
			return !there || o.Version != c.Version || c.Type == tarn.Delete
		})},
	} {
		var r recorder
		random[0].on(&r, subject(f))
		if len(r.errors) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}
