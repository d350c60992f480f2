package wire

// Moment is when in the life of an object a state of it is decoded.
type Moment uint8

const (
	// Once: nothing is known of what was before or comes after.
	Once Moment = iota
	// First: the object is held from now on, and may change.
	First
	// Again: it is held, in an earlier state.
	Again
	// Last: it is held, and will be no more.
	Last
)

// Held finds the state of an object that is held, by its namespace and name; nil if
// there is none. Several goroutines may call it at a time.
type Held func(namespace, name string) any
