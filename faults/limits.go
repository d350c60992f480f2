package faults

import "time"

// Limits are the largest values that faults draw. Small values are more likely
// than large ones: a delay of up to 5 s is as likely below as above 70 ms. A field
// that is 0 has the default that its comment names.
type Limits struct {
	// Delay is the longest [Delay] and [Lag]: 5 s.
	Delay time.Duration
	// RetryAfter is the longest delay that a busy source requests, in whole
	// seconds: 30 s.
	RetryAfter time.Duration
	// Hang is after how long a hung request fails; 0: when its context or the
	// day ends, not before.
	Hang time.Duration
	// Burst is the most requests in a row that one fault hits: 5.
	Burst int
	// Events and Life are the number of events and the time after which a stream
	// with a bad end fails at the latest, whichever comes first: 50 and 10 min.
	Events int
	Life   time.Duration
	// Bytes is the same for bodies and connections: 64 KiB.
	Bytes int64
}

func (l Limits) withDefaults() Limits {
	if l.Delay <= 0 {
		l.Delay = 5 * time.Second
	}
	if l.RetryAfter <= 0 {
		l.RetryAfter = 30 * time.Second
	}
	if l.Burst <= 0 {
		l.Burst = 5
	}
	if l.Events <= 0 {
		l.Events = 50
	}
	if l.Life <= 0 {
		l.Life = 10 * time.Minute
	}
	if l.Bytes <= 0 {
		l.Bytes = 64 << 10
	}
	return l
}
