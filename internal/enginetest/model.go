package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tarnproject/tarn"
)

// A State is one state of an object: as the source had it, or as an engine has it.
type State struct {
	Key     tarn.Key
	Version tarn.Version
	Deleted bool
	// Inferred marks a delete that the feeder did not see: its version is that of the last
	// state that was known.
	Inferred bool
}

// Model is what the source did, in order.
type Model struct {
	mu     sync.Mutex
	states []State
}

// Add records a state of the source.
func (m *Model) Add(s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states = append(m.states, s)
}

// Last is the version of the newest state.
func (m *Model) Last() tarn.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.states) == 0 {
		return ""
	}
	return m.states[len(m.states)-1].Version
}

// Report is how an engine compares with the model.
type Report struct {
	// States counts those of the source, Seen those of the engine.
	States, Seen int
	// Marked counts states that are missing within a gap, Gaps the gaps.
	Marked, Gaps int
	// Lost, Repeated, Disordered and Invented describe what must not be: a state that is
	// missing outside of every gap, one that is there twice, one that comes after a newer
	// one of its object, and one that the source never had.
	Lost, Repeated, Disordered, Invented []State
}

func (r Report) String() string {
	return fmt.Sprintf("%d states of the source, %d in the engine, %d missing and marked by %d gaps; %d lost unmarked, %d repeated, %d out of order, %d invented",
		r.States, r.Seen, r.Marked, r.Gaps, len(r.Lost), len(r.Repeated), len(r.Disordered), len(r.Invented))
}

// Good says that the engine has every state once, in order, or says where it has not.
func (r Report) Good() bool {
	return len(r.Lost)+len(r.Repeated)+len(r.Disordered)+len(r.Invented) == 0
}

// Compare looks at what an engine has, in its order, and which gaps it records.
func (m *Model) Compare(seen []State, gaps []tarn.Gap) Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Report{States: len(m.states), Seen: len(seen), Gaps: len(gaps)}
	type name struct {
		key     tarn.Key
		version tarn.Version
		deleted bool
	}
	real, found := map[name]bool{}, map[name]bool{}
	for _, s := range m.states {
		real[name{s.Key, s.Version, s.Deleted}] = true
	}
	newest := map[tarn.Key]tarn.Version{}
	for _, s := range seen {
		if s.Inferred {
			continue
		}
		n := name{s.Key, s.Version, s.Deleted}
		switch {
		case !real[n]:
			r.Invented = append(r.Invented, s)
		case found[n]:
			r.Repeated = append(r.Repeated, s)
		case s.Version.OlderThan(newest[s.Key]):
			r.Disordered = append(r.Disordered, s)
		}
		found[n] = true
		newest[s.Key] = s.Version
	}
	for _, s := range m.states {
		switch {
		case found[name{s.Key, s.Version, s.Deleted}]:
		case slices.ContainsFunc(gaps, func(g tarn.Gap) bool { return within(s.Version, g) }):
			r.Marked++
		default:
			r.Lost = append(r.Lost, s)
		}
	}
	return r
}

// Present is what the source has now.
func (m *Model) Present() map[tarn.Key]tarn.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[tarn.Key]tarn.Version{}
	for _, s := range m.states {
		if s.Deleted {
			delete(all, s.Key)
		} else {
			all[s.Key] = s.Version
		}
	}
	return all
}

// within says whether a version is in a gap, which begins after From.
func within(v tarn.Version, g tarn.Gap) bool {
	return (g.From == "" || g.From.OlderThan(v)) && (g.To == "" || !g.To.OlderThan(v))
}

// First is some of the states, for a message.
func First(states []State) string {
	var lines []string
	for _, s := range states[:min(5, len(states))] {
		lines = append(lines, fmt.Sprintf("%+v", s))
	}
	return strings.Join(lines, ", ")
}
