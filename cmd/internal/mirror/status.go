package mirror

import (
	"time"

	"github.com/tarnproject/tarn"
)

// Status is how a table is doing at one moment.
type Status struct {
	Health tarn.Health
	// Objects is how many there are in the copy, which gets its first state in
	// one piece; Received is how many of that have arrived so far, and all once
	// it is synced.
	Objects, Received int
	// Expected is how many the server said there are when the table was started,
	// to show progress by; once it is synced, as many as there are. 0 is unknown.
	Expected int
	// EventsPerSecond is the rate of the last ten seconds.
	EventsPerSecond float64
	// Lag is the longest delay of a change in the last second: from when it was read
	// until it was in the copy and delivered to all subscribers of the table. The time
	// from the server to here is not known.
	Lag time.Duration
	// BytesPerObject is about how much memory an object takes, 0 while that is
	// not known: what can be reached from some hundred of them, counted once
	// however many share it, by their number. Beyond those few, sharing is not
	// seen, so it is rather too high than too low; what the store needs beside
	// is not in it. It is estimated anew every half minute at most.
	BytesPerObject int
}

// Sample is what a table was at some time.
type Sample struct {
	Time    time.Time
	Objects int
	// EventsPerSecond is the rate since the sample before.
	EventsPerSecond float64
	// Age is the time since the last contact with the server.
	Age time.Duration
	// Lag is as in [Status].
	Lag            time.Duration
	BytesPerObject int
}
