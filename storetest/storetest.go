package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// Object is what the suite stores. It is plain data, so that a store that keeps
// bytes can take it too, and objects are the same when they are equal.
type Object struct {
	Name string
	// Generation tells the states of one object apart.
	Generation int
}

// Run checks the stores that newStore makes: one new, empty store for each
// subtest. newStore may use t to clean up.
func Run(t *testing.T, newStore func(t *testing.T) tarn.ReadStore[Object]) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			c.run(&rig{T: t, store: newStore(t), patience: 10 * time.Second})
		})
	}
}

// check is one demand of the contract.
type check struct {
	name string
	run  func(*rig)
}

var checks = slices.Concat(sequential, concurrent, random)

// reporter is as much of testing.T as the checks need, so that the suite's own
// tests can look at what it reports.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// rig lets a check speak of states instead of calls.
type rig struct {
	T     reporter
	store tarn.ReadStore[Object]
	// patience is how long a write may take that waits for nobody. Only a failing
	// store uses it up.
	patience time.Duration
	failed   atomic.Bool
}

func (r *rig) errorf(format string, args ...any) {
	r.T.Helper()
	r.failed.Store(true)
	r.T.Errorf(format, args...)
}

// state is a whole content by generation.
type state map[tarn.Key]int

// differs says how have is not s, "" if it is. Of many differences it shows a
// few.
func (s state) differs(have state) string {
	var lines []string
	for key, generation := range s {
		if other, ok := have[key]; !ok {
			lines = append(lines, fmt.Sprintf("  %q is missing, want generation %d", key, generation))
		} else if other != generation {
			lines = append(lines, fmt.Sprintf("  %q has generation %d, want %d", key, other, generation))
		}
	}
	for key, generation := range have {
		if _, ok := s[key]; !ok {
			lines = append(lines, fmt.Sprintf("  %q has generation %d, want none", key, generation))
		}
	}
	slices.Sort(lines)
	const shown = 12
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Sprintf("  and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// numbered is a state of n keys, all at one generation.
func numbered(n, generation int) state {
	s := state{}
	for i := range n {
		s[tarn.Key(fmt.Sprintf("ns/%05d", i))] = generation
	}
	return s
}

func object(key tarn.Key, generation int) Object {
	return Object{Name: string(key), Generation: generation}
}

// items gives the state in the order of its keys.
func (s state) items() []tarn.Item[Object] {
	items := make([]tarn.Item[Object], 0, len(s))
	for _, key := range slices.Sorted(maps.Keys(s)) {
		version := tarn.Version(fmt.Sprint(s[key]))
		items = append(items, tarn.Item[Object]{
			Meta:   tarn.Meta{Key: key, Version: version, UID: "uid of " + string(key)},
			Object: object(key, s[key]),
		})
	}
	return items
}

// to gives the changes that lead from s to next, in the order of their keys.
func (s state) to(next state) []tarn.Change[Object] {
	var changes []tarn.Change[Object]
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if _, stays := next[key]; !stays {
			changes = append(changes, deletion(key, s[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		old, had := s[key]
		switch {
		case !had:
			changes = append(changes, addition(key, next[key]))
		case old != next[key]:
			changes = append(changes, update(key, old, next[key]))
		}
	}
	return changes
}

func addition(key tarn.Key, generation int) tarn.Change[Object] {
	return tarn.Change[Object]{Type: tarn.Add, Key: key, Object: object(key, generation), Version: tarn.Version(fmt.Sprint(generation))}
}

func update(key tarn.Key, from, generation int) tarn.Change[Object] {
	c := addition(key, generation)
	c.Type, c.Old = tarn.Update, object(key, from)
	return c
}

func deletion(key tarn.Key, generation int) tarn.Change[Object] {
	c := addition(key, generation)
	c.Type, c.Old = tarn.Delete, c.Object
	return c
}

func (r *rig) replace(s state, v tarn.Version) {
	r.T.Helper()
	if err := r.store.Replace(s.items(), tarn.At(v)); err != nil {
		r.errorf("Replace with %d items at version %q failed: %v", len(s), v, err)
	}
}

func (r *rig) apply(v tarn.Version, changes ...tarn.Change[Object]) {
	r.T.Helper()
	if err := r.store.Apply(changes, tarn.At(v)); err != nil {
		r.errorf("Apply of %d changes at version %q failed: %v", len(changes), v, err)
	}
}

// expect reads the store in every possible way.
func (r *rig) expect(want state, v tarn.Version) {
	r.T.Helper()
	have := state{}
	for key, o := range r.store.All() {
		if _, twice := have[key]; twice {
			r.errorf("All gave %q twice", key)
		}
		if o.Name != string(key) {
			r.errorf("All gave %+v under the key %q", o, key)
		}
		have[key] = o.Generation
	}
	if diff := want.differs(have); diff != "" {
		r.errorf("All has the wrong content:\n%s", diff)
	}
	for key, generation := range want {
		if o, ok := r.store.Get(key); !ok || o != object(key, generation) {
			r.errorf("Get(%q) gave %+v, %t, want %+v", key, o, ok, object(key, generation))
		}
		if holder, is := r.store.(tarn.Holder); is {
			if o, ok := holder.Held(key); !ok || o != any(object(key, generation)) {
				r.errorf("Held(%q) gave %+v, %t, want %+v", key, o, ok, object(key, generation))
			}
		}
	}
	if n := r.store.Len(); n != len(want) {
		r.errorf("Len is %d, want %d", n, len(want))
	}
	if version := r.store.Version(); version != v {
		r.errorf("Version is %q, want %q", version, v)
	}
}

// expectAbsent reads keys that the content does not have.
func (r *rig) expectAbsent(keys ...tarn.Key) {
	r.T.Helper()
	for _, key := range keys {
		if o, ok := r.store.Get(key); ok || o != (Object{}) {
			r.errorf("Get(%q) gave %+v, %t, want none", key, o, ok)
		}
		if holder, is := r.store.(tarn.Holder); is {
			if o, ok := holder.Held(key); ok {
				r.errorf("Held(%q) gave %+v, want none", key, o)
			}
		}
	}
}
