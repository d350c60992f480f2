package sim

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// Line is one line of a day's history.
type Line struct {
	At   time.Time
	Who  string
	What string
}

// record collects the history and the violations.
type record struct {
	mu         sync.Mutex
	lines      []Line
	violations []string
}

func (r *record) note(who, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, Line{time.Now(), who, fmt.Sprintf(format, args...)})
}

// violate records a broken promise.
func (r *record) violate(who, promise, format string, args ...any) {
	text := fmt.Sprintf("%s: %s: %s", promise, who, fmt.Sprintf(format, args...))
	r.note(who, "VIOLATES %s", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.violations = append(r.violations, text)
}

func (r *record) violated() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.violations...)
}

// recordingStore is the store of a replica under test. It records each of its states, so
// that reads can be checked.
type recordingStore struct {
	*memory.Store[*Object]
	judge func(v tarn.Version, content State)

	mu   sync.Mutex
	seen map[string]bool
}

func newRecordingStore() *recordingStore {
	s := &recordingStore{Store: memory.New[*Object](), seen: map[string]bool{}}
	s.remember(State{})
	return s
}

func (s *recordingStore) Apply(changes []tarn.Change[*Object], at tarn.Position) error {
	err := s.Store.Apply(changes, at)
	content := s.content()
	s.remember(content)
	s.judge(at.Version, content)
	return err
}

func (s *recordingStore) content() State { return maps.Collect(s.All()) }

func (s *recordingStore) remember(content State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[content.String()] = true
}

// had reports whether the store was ever in this state.
func (s *recordingStore) had(content State) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[content.String()]
}
