package logtest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// Object is what the suite commits.
type Object struct {
	Key     tarn.Key
	Version tarn.Version
	UID     string
	Text    string
}

// Append encodes an object, as the codec of a subject does.
func Append(buf []byte, o Object) ([]byte, error) {
	raw, err := json.Marshal(o)
	return append(buf, raw...), err
}

// model is a log in the simplest form: a list.
type model struct {
	entries []changelog.Entry
	alive   map[tarn.Key]int
	version tarn.Version
	contact time.Time
	// horizon is the number of entries of the first state, since its time.
	horizon int
	since   time.Time
}

func (m *model) commit(b tarn.Batch[Object]) {
	first := m.contact.IsZero()
	if first {
		m.alive = map[tarn.Key]int{}
	}
	gaps, since, seen := slices.Clone(b.Gaps), m.contact, map[tarn.Key]bool{}
	if to := b.Positions[0].Version; b.Whole && !first && len(gaps) == 0 && to != m.version {
		gaps = []tarn.Gap{{From: m.version, To: to, Cause: tarn.GapReconciled}}
	}
	gap := func(until time.Time) {
		if since.IsZero() || since.After(until) {
			since = until
		}
		m.entries = append(m.entries, changelog.Entry{State: changelog.State{Heard: until}, Gap: &changelog.Gap{Gap: gaps[0], Since: since, Until: until}})
		gaps = gaps[1:]
	}
	for _, c := range b.Changes {
		for len(gaps) > 0 && (c.Missed || c.Rewound || gaps[0].From.OlderThan(c.Version)) {
			gap(c.Heard)
		}
		since, seen[c.Key] = c.Heard, c.Type != tarn.Delete
		m.change(c)
	}
	for len(gaps) > 0 {
		gap(b.LastContact)
	}
	for _, key := range m.keys() {
		if b.Whole && !seen[key] {
			m.change(tarn.Change[Object]{Type: tarn.Delete, Missed: true, Key: key, Heard: b.LastContact})
		}
	}
	m.version, m.contact = b.Positions[0].Version, b.LastContact
	if first {
		m.horizon, m.since = len(m.entries), m.contact
		for _, e := range m.entries {
			if e.Heard.After(m.since) {
				m.since = e.Heard
			}
		}
	}
}

func (m *model) keys() (keys []tarn.Key) {
	for key := range m.alive {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (m *model) change(c tarn.Change[Object]) {
	at, alive := m.alive[c.Key]
	e := changelog.Entry{State: changelog.State{Key: c.Key, UID: c.Object.UID, Version: c.Version, Heard: c.Heard}}
	e.Object, _ = Append(nil, c.Object) // it cannot fail
	switch {
	case c.Type == tarn.Delete && !alive:
		return
	case c.Type == tarn.Delete:
		if e.Operation, e.Until, e.UID = changelog.Deleted, c.Heard, m.entries[at].UID; c.Missed {
			e.Object = m.entries[at].Object
		}
		delete(m.alive, c.Key)
	case alive && m.entries[at].UID != c.Object.UID:
		m.change(tarn.Change[Object]{Type: tarn.Delete, Missed: true, Key: c.Key, Heard: c.Heard})
		m.change(c)
		return
	case alive && string(m.entries[at].Object) == string(e.Object) && m.entries[at].Version == e.Version:
		return
	case alive:
		e.Operation = changelog.Modified
	default:
		e.Operation = changelog.Added
	}
	if alive {
		m.entries[at].Until = c.Heard
	}
	if e.Operation != changelog.Deleted {
		m.alive[c.Key] = len(m.entries)
	}
	m.entries = append(m.entries, e)
}

// asOf are the states after n entries, by key.
func (m *model) asOf(n int) (all []changelog.Entry) {
	at := map[tarn.Key]changelog.Entry{}
	for _, e := range m.entries[:n] {
		switch {
		case e.Gap != nil:
		case e.Operation == changelog.Deleted:
			delete(at, e.Key)
		default:
			at[e.Key] = e
		}
	}
	for _, e := range at {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b changelog.Entry) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return all
}

// gapsAt are the gaps after some entries that a time lies in.
func (m *model) gapsAt(t time.Time, from int) (gaps []changelog.Gap) {
	for _, e := range m.entries[from:] {
		if e.Gap != nil && e.Gap.Covers(t) {
			gaps = append(gaps, *e.Gap)
		}
	}
	return gaps
}
