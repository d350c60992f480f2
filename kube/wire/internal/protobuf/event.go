package protobuf

// Event is what happens to an object with the state that is decoded.
type Event uint8

const (
	// Standalone: nothing is known of earlier or later states.
	Standalone Event = iota
	// Added: the object is held from now on, and may change.
	Added
	// Modified: the object is held in an earlier state.
	Modified
	// Deleted: the object is held, and is not any more after this state.
	Deleted
)

// Held finds the state of an object that is held, by its namespace and name; nil if
// there is none. Several goroutines may call it at a time.
type Held func(namespace, name string) any
