package e2e

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// healthInterval is how often Health is sampled: short enough for every state that
// a user could see.
const healthInterval = 20 * time.Millisecond

// healthLog records a replica's Health over time.
//
// Every sample is checked for what must always hold. Scenarios check their
// expectations on the entries: the samples in which something other than counters
// and ages changed.
type healthLog struct {
	health func() tarn.Health
	stop   chan struct{}
	done   chan struct{}

	mu           sync.Mutex
	entries      []healthEntry
	last         tarn.Health
	versionDrops int64 // how often the version went back
	broken       []string
}

type healthEntry struct {
	at     time.Time
	health tarn.Health
}

func recordHealth(health func() tarn.Health) *healthLog {
	s := &healthLog{health: health, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		tick := time.NewTicker(healthInterval)
		defer tick.Stop()
		for {
			s.sample()
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
		}
	}()
	return s
}

// end stops sampling.
func (s *healthLog) end() {
	close(s.stop)
	<-s.done
}

func (s *healthLog) sample() {
	now := time.Now()
	h := s.health()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check(h)
	if len(s.entries) == 0 || summary(h) != summary(s.last) {
		s.entries = append(s.entries, healthEntry{now, h})
	}
	s.last = h
}

// check records what must never be.
func (s *healthLog) check(h tarn.Health) {
	before := s.last
	if h.Version.OlderThan(before.Version) {
		s.versionDrops++
	}
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{before.Synced && !h.Synced, "it was synced and is no more"},
		{h.Synced && h.Version == "", "it is synced at no version"},
		{h.Synced && h.LastContact.IsZero(), "it is synced without any contact"},
		{h.Age < 0, "its knowledge is from the future"},
		{h.LastContact.Before(before.LastContact), "the last contact is older than the one before"},
		{h.State == tarn.StateWaiting && h.Err == nil, "it is waiting for no reason"},
		{h.Err != nil && h.ErrSince.IsZero(), "it is failing since never"},
		{h.Err != nil && h.Failures == 0, "it is failing without a failure"},
		{s.versionDrops > h.Rewinds, "its version went back without a rewind"},
		{h.Events < before.Events || h.Watches < before.Watches || h.Rewinds < before.Rewinds, "a counter went back"},
	} {
		if rule.broken && len(s.broken) < 10 {
			s.broken = append(s.broken, fmt.Sprintf("%s: %s (before: %s)", rule.says, h, before))
		}
	}
}

// summary is the part of Health whose change makes an entry.
func summary(h tarn.Health) string {
	return fmt.Sprintf("%s synced=%v rewinds=%d lists=%v bad=%d err=%v", h.State, h.Synced, h.Rewinds, h.Lists, h.BadCount, h.Err)
}

// since returns the entries that were current at a time or later.
func (s *healthLog) since(t time.Time) []tarn.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []tarn.Health
	for i, c := range s.entries {
		if i+1 < len(s.entries) && s.entries[i+1].at.Before(t) {
			continue
		}
		found = append(found, c.health)
	}
	return found
}

// complaints returns what must never be and was.
func (s *healthLog) complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.broken...)
}

// String prints one line per entry.
func (s *healthLog) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, c := range s.entries {
		fmt.Fprintf(&b, "  %s %s\n", c.at.Format("15:04:05.000"), summary(c.health))
	}
	return b.String()
}
