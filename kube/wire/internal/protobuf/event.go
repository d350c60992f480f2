package protobuf

// Event is when in the life of an object a state of it is decoded.
type Event uint8

const (
	// Standalone: nothing is known of what was before or comes after.
	Standalone Event = iota
	// Added: the object is held from now on, and may change.
	Added
	// Modified: it is held, in an earlier state.
	Modified
	// Deleted: it is held, and will be no more.
	Deleted
)

// Held finds the state of an object that is held, by its namespace and name; nil if
// there is none. Several goroutines may call it at a time.
type Held func(namespace, name string) any
