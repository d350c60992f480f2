package tarn

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// backlogModel says what a backlog must give, the slow way: it keeps every
// change that was published and not taken, and only when asked works out what
// they come to.
type backlogModel struct {
	bound int
	// waiting are the changes as published, folded whether the bound has been
	// passed since there was last nothing.
	waiting   []stamped
	published int
	folded    bool
	// has is what the subscriber has, truth what it should come to have.
	has, truth map[Key]*entry
}

// stamped is a change with when and as which it was published.
type stamped struct {
	at     time.Time
	number int
	Change[*entry]
}

func (m *backlogModel) publish(at time.Time, changes ...Change[*entry]) {
	for _, c := range changes {
		m.published++
		m.waiting = append(m.waiting, stamped{at, m.published, c})
	}
	if m.count() > m.bound {
		m.folded = true
	}
}

// count is how many changes the subscriber is behind.
func (m *backlogModel) count() (n int) {
	for _, group := range m.groups() {
		if group[0].Type != marked {
			n += len(group)
		}
	}
	return n
}

// groups are the changes to be given, those together that belong together.
func (m *backlogModel) groups() (groups [][]stamped) {
	if !m.folded {
		for i := range m.waiting {
			groups = append(groups, m.waiting[i:i+1])
		}
		return groups
	}
	byKey := map[Key][]stamped{}
	for _, c := range m.waiting {
		if c.Type == marked {
			groups = append(groups, []stamped{c})
			continue
		}
		byKey[c.Key] = append(byKey[c.Key], c)
		if m.has[c.Key] == nil && c.Type == Delete {
			// The subscriber did not have it and has not got it: as if nothing
			// had been.
			delete(byKey, c.Key)
		}
	}
	for _, changes := range byKey {
		groups = append(groups, m.sum(changes))
	}
	slices.SortFunc(groups, func(a, b []stamped) int { return cmp.Compare(a[0].number, b[0].number) })
	return groups
}

// sum is what all changes of a key come to.
func (m *backlogModel) sum(changes []stamped) []stamped {
	first, last := changes[0], changes[len(changes)-1]
	at := func(c Change[*entry]) stamped { return stamped{first.at, first.number, c} }
	has := m.has[first.Key]
	gone := slices.IndexFunc(changes, func(c stamped) bool { return c.Type == Delete })
	changed := slices.ContainsFunc(changes, func(c stamped) bool { return c.Type != Sync })
	newest := Change[*entry]{Key: first.Key, Object: last.Object, Version: last.Version}
	for _, c := range changes {
		newest.Initial = c.Initial || newest.Initial && c.Type != Add
	}
	switch {
	case has == nil:
		newest.Type = Add
		return []stamped{at(newest)}
	case gone >= 0:
		goes := changes[gone].Change
		goes.Old = has
		if last.Type == Delete {
			return []stamped{at(goes)}
		}
		newest.Type = Add
		return []stamped{at(goes), at(newest)}
	case changed:
		newest.Type, newest.Old = Update, has
		return []stamped{at(newest)}
	default:
		return changes[:1]
	}
}

// take is what the next n changes must be.
func (m *backlogModel) take(n int) (got []Change[*entry]) {
	for _, group := range m.groups() {
		if len(got)+len(group) > n {
			break
		}
		for _, c := range group {
			got = append(got, c.Change)
		}
		if !m.folded {
			m.waiting = m.waiting[1:]
		} else {
			m.waiting = slices.DeleteFunc(m.waiting, func(w stamped) bool {
				return w.Key == group[0].Key && (w.Type == marked) == (group[0].Type == marked)
			})
		}
	}
	if len(m.groups()) == 0 {
		m.folded, m.waiting = false, nil
	}
	return got
}

// apply gives a change to the subscriber, who may expect some things of it.
func (m *backlogModel) apply(t *rapid.T, c Change[*entry]) {
	had, present := m.has[c.Key]
	switch {
	case c.Type == marked:
		return
	case c.Type == Add && present:
		t.Fatalf("add of %s, but the subscriber has it", c.Key)
	case c.Type != Add && !present:
		t.Fatalf("type %d for %s, but the subscriber does not have it", c.Type, c.Key)
	case c.Type != Add && c.Old != had:
		t.Fatalf("the old %s is %p, but the subscriber was last given %p", c.Key, c.Old, had)
	}
	if c.Type == Delete {
		delete(m.has, c.Key)
	} else {
		m.has[c.Key] = c.Object
	}
}

// Whatever is published and however it is taken, a backlog gives what the model
// gives: each single change while the bound holds, and the net change of each key
// once the bound was passed.
func TestBacklogIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.IntRange(0, 12).Draw(t, "bound")
		m := &backlogModel{bound: bound, has: map[Key]*entry{}, truth: map[Key]*entry{}}
		b := newBacklog[*entry](func() int { return bound })
		clock := time.Unix(0, 0)
		var shared, copies [][]Change[*entry]
		hasMark := false

		check := func() {
			n, since := b.lag()
			if want := m.count(); n != want {
				t.Fatalf("the count is %d, want %d", n, want)
			}
			if n > 0 {
				groups := m.groups()
				oldest := slices.IndexFunc(groups, func(g []stamped) bool { return g[0].Type != marked })
				if want := groups[oldest][0].at; !since.Equal(want) {
					t.Fatalf("the oldest is from %v, want %v", since, want)
				}
			}
			if m.folded != b.folded && len(m.waiting) > 0 {
				t.Fatalf("folded is %v, want %v", b.folded, m.folded)
			}
			for _, p := range b.line {
				if p.n > 2 {
					t.Fatalf("%d changes are pending for %s", p.n, p.next[0].Key)
				}
			}
		}
		take := func(n int) {
			want := m.take(n)
			b.mu.Lock()
			got := b.pop(make([]Change[*entry], 0, n))
			b.mu.Unlock()
			if !slices.Equal(got, want) {
				t.Fatalf("took %s, want %s", show(got), show(want))
			}
			for _, c := range got {
				m.apply(t, c)
				if c.Type != marked {
					b.handed()
				}
			}
		}

		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				clock = clock.Add(time.Second)
				changes := make([]Change[*entry], 0, 4)
				for range rapid.IntRange(1, 4).Draw(t, "changes") {
					key := rapid.SampledFrom([]Key{"a", "b", "c", "d"}).Draw(t, "key")
					changes = append(changes, nextChange(t, m.truth, key, !hasMark))
				}
				shared = append(shared, changes)
				copies = append(copies, slices.Clone(changes))
				b.add(clock, changes)
				m.publish(clock, changes...)
			},
			"mark": func(t *rapid.T) {
				if hasMark {
					t.Skip("once is enough")
				}
				hasMark = true
				clock = clock.Add(time.Second)
				b.mark(clock)
				m.publish(clock, Change[*entry]{Type: marked})
			},
			"take": func(t *rapid.T) { take(rapid.IntRange(2, 8).Draw(t, "n")) },
			"":     func(t *rapid.T) { check() },
		})
		for len(m.groups()) > 0 {
			take(handOver)
		}
		check()
		if !maps.Equal(m.has, m.truth) {
			t.Fatalf("the subscriber ends with %v, published was %v", m.has, m.truth)
		}
		for i := range shared {
			if !slices.Equal(shared[i], copies[i]) {
				t.Fatalf("a batch that all subscribers share was changed from %s to %s", show(copies[i]), show(shared[i]))
			}
		}
	})
}

// nextChange draws what may happen to a key next and lets it happen.
func nextChange(t *rapid.T, truth map[Key]*entry, key Key, initial bool) Change[*entry] {
	held, present := truth[key]
	c := Change[*entry]{Type: Add, Key: key, Old: held}
	if present {
		c.Type = rapid.SampledFrom([]ChangeType{Update, Update, Delete, Delete, Sync}).Draw(t, "type")
	} else {
		c.Initial = initial
	}
	if c.Type == Sync {
		c.Object, c.Version = held, held.version
		return c
	}
	c.Version = Version(strconv.Itoa(rapid.IntRange(1, 1_000_000).Draw(t, "version")))
	c.Object = &entry{name: string(key), version: c.Version}
	truth[key] = c.Object
	if c.Type == Delete {
		delete(truth, key)
	}
	return c
}
