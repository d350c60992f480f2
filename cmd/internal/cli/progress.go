package cli

import (
	"fmt"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// progress is how far a mirror has come with its first state.
type progress struct {
	tables, synced     int
	received, expected int
	// known says that expected is known for all tables.
	known   bool
	elapsed time.Duration
}

func progressOf(m *mirror.Mirror, elapsed time.Duration) progress {
	p := progress{known: true, elapsed: elapsed}
	for _, t := range m.Tables() {
		status := t.Status()
		p.tables++
		if status.Health.Synced {
			p.synced++
		} else if status.Expected == 0 {
			p.known = false
		}
		p.received += status.Received
		p.expected += max(status.Expected, status.Received)
	}
	return p
}

func (p progress) done() bool { return p.synced == p.tables }

// part is the part that is done: by objects if their number is known, else by tables.
func (p progress) part() float64 {
	switch {
	case p.known && p.expected > 0:
		return float64(p.received) / float64(p.expected)
	case p.tables > 0:
		return float64(p.synced) / float64(p.tables)
	}
	return 0
}

func (p progress) perSecond() float64 {
	if p.elapsed <= 0 {
		return 0
	}
	return float64(p.received) / p.elapsed.Seconds()
}

// left estimates the remaining time at this rate, if possible.
func (p progress) left() (time.Duration, bool) {
	if !p.known || p.received == 0 || p.elapsed < time.Second || p.received >= p.expected {
		return 0, false
	}
	return time.Duration(float64(p.expected-p.received) / p.perSecond() * float64(time.Second)), true
}

// String describes the progress briefly: 1,200 of 5,000 objects, 240/s, 16s left.
func (p progress) String() string { return p.of("object") }

// of is String for things of that name.
func (p progress) of(thing string) string {
	text := plural(p.received, thing)
	if p.known && p.expected > 0 {
		text = fmt.Sprintf("%s of %s", thousands(p.received), plural(p.expected, thing))
	}
	text += fmt.Sprintf(", %s/s", figure(p.perSecond()))
	if left, ok := p.left(); ok {
		text += ", " + seconds(left) + " left"
	}
	return text
}
