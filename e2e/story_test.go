package e2e

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// storyPause is how often Health is looked at: no state that a person could see
// is missed.
const storyPause = 20 * time.Millisecond

// story is what a replica's Health said over time.
//
// Some things must be true at every moment, whatever happens; they are checked
// on every look. What a scenario expects is asked of the chapters, which are the
// moments at which something other than counters and ages changed.
type story struct {
	health func() tarn.Health
	stop   chan struct{}
	done   chan struct{}

	mu       sync.Mutex
	chapters []chapter
	last     tarn.Health
	setbacks int64 // how often the version went back
	broken   []string
}

type chapter struct {
	at     time.Time
	health tarn.Health
}

func tellStory(health func() tarn.Health) *story {
	s := &story{health: health, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		tick := time.NewTicker(storyPause)
		defer tick.Stop()
		for {
			s.look()
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
		}
	}()
	return s
}

// end stops looking.
func (s *story) end() {
	close(s.stop)
	<-s.done
}

func (s *story) look() {
	now := time.Now()
	h := s.health()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check(h)
	if len(s.chapters) == 0 || headline(h) != headline(s.last) {
		s.chapters = append(s.chapters, chapter{now, h})
	}
	s.last = h
}

// check finds what can never be.
func (s *story) check(h tarn.Health) {
	before := s.last
	if h.Version.OlderThan(before.Version) {
		s.setbacks++
	}
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{before.Synced && !h.Synced, "it was synced and is no more"},
		{h.Synced && h.Version == "", "it is synced at no version"},
		{h.Synced && h.LastContact.IsZero(), "it is synced without having heard anything"},
		{h.Age < 0, "its knowledge is from the future"},
		{h.LastContact.Before(before.LastContact), "the last contact is older than the one before"},
		{h.State == tarn.StateWaiting && h.Err == nil, "it is waiting for no reason"},
		{h.Err != nil && h.ErrSince.IsZero(), "it is failing since never"},
		{h.Err != nil && h.Failures == 0, "it is failing without a failure"},
		{s.setbacks > h.Rewinds, "its version went back without a rewind"},
		{h.Events < before.Events || h.Watches < before.Watches || h.Rewinds < before.Rewinds, "a counter went back"},
	} {
		if rule.broken && len(s.broken) < 10 {
			s.broken = append(s.broken, fmt.Sprintf("%s: %s (before: %s)", rule.says, h, before))
		}
	}
}

// headline is what makes a chapter.
func headline(h tarn.Health) string {
	return fmt.Sprintf("%s synced=%v rewinds=%d lists=%v bad=%d err=%v", h.State, h.Synced, h.Rewinds, h.Lists, h.BadCount, h.Err)
}

// since returns the chapters that were current at a time or later.
func (s *story) since(t time.Time) []tarn.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []tarn.Health
	for i, c := range s.chapters {
		if i+1 < len(s.chapters) && s.chapters[i+1].at.Before(t) {
			continue
		}
		found = append(found, c.health)
	}
	return found
}

// complaints returns what could not have been.
func (s *story) complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.broken...)
}

// String prints the story, one line per chapter.
func (s *story) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, c := range s.chapters {
		fmt.Fprintf(&b, "  %s %s\n", c.at.Format("15:04:05.000"), headline(c.health))
	}
	return b.String()
}
