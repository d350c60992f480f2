package pool

// Options say what decoders and sharers share, and what decoders leave out.
type Options struct {
	// Pool is where equal parts are found again; nil shares nothing.
	Pool *Pool
	// SharedMetadata lets objects have labels, annotations, owner references and
	// finalizers in common. It saves some 700 bytes for each object. Without it these
	// are each object's own, because they are what programs write to by mistake most
	// often.
	SharedMetadata bool
	// Drop names fields to skip on the wire, by their JSON path:
	// "metadata.managedFields". A path goes through lists ("spec.containers.env"),
	// not into maps. A path that the type does not have is an error.
	Drop []string
}
