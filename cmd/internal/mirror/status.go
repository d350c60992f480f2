package mirror

import (
	"time"

	"github.com/tarnproject/tarn"
)

// Status is the state of a table at one moment.
type Status struct {
	Health tarn.Health
	// Objects is the number of objects in the copy, which receives its first state in one
	// piece. Received is how many of them have arrived so far, and all once it is synced.
	Objects, Received int
	// Expected is the number of objects on the server when the table was started, to show
	// progress; once it is synced, the number in the copy. 0 means unknown.
	Expected int
	// EventsPerSecond is the rate of the last ten seconds.
	EventsPerSecond float64
	// Lag is the longest delay of a change in the last second: from when it was read
	// until it was in the copy and delivered to all subscribers of the table. The time
	// from the server to here is not known.
	Lag time.Duration
	// BytesPerObject estimates the memory of an object, 0 while that is unknown. It counts
	// the memory that can be reached from some hundred objects, each piece once even if
	// several share it, and divides it by their number. It does not see sharing beyond those
	// few, so it is rather too high than too low; it does not include what the store needs
	// besides. It is estimated again every half minute at most.
	BytesPerObject int
}

// Sample is the state of a table at some time.
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
