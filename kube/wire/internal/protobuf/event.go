package protobuf

// Event is what happens to an object when the decoded state arrives.
type Event uint8

const (
	// Standalone: earlier and later states are unknown.
	Standalone Event = iota
	// Added: the caller holds the object from now on, and it may change.
	Added
	// Modified: the caller holds an earlier state of the object.
	Modified
	// Deleted: the caller holds the object, and drops it after this state.
	Deleted
)

// Held returns the state of an object that the caller holds, by namespace and name;
// nil if it holds none. Several goroutines may call it at a time.
type Held func(namespace, name string) any
