package kube

import (
	"sync/atomic"
	"time"
)

// Decoded is how much has been decoded, bad objects included.
type Decoded struct {
	// Objects counts the items of lists and the events of watches, bookmarks too;
	// Bytes is their size on the wire, uncompressed.
	Objects, Bytes uint64
	// Time is the time of decoding, summed over all goroutines.
	Time time.Duration
}

// decodeCounter counts for [Source.Decoded] and [Client.Decoded]. It is written
// once for each batch: the items of a block, the events that came together.
type decodeCounter struct {
	objects, bytes, nanos atomic.Uint64
	// parent counts the same.
	parent *decodeCounter
}

func (c *decodeCounter) add(objects, bytes int, took time.Duration) {
	for ; c != nil; c = c.parent {
		c.objects.Add(uint64(objects))
		c.bytes.Add(uint64(bytes))
		c.nanos.Add(uint64(took))
	}
}

func (c *decodeCounter) sum() Decoded {
	return Decoded{Objects: c.objects.Load(), Bytes: c.bytes.Load(), Time: time.Duration(c.nanos.Load())}
}

// Decoded counts what the source has decoded so far.
func (s *Source[T]) Decoded() Decoded { return s.decoded.sum() }

// Decoded counts what all sources of the client have decoded so far.
func (c *Client) Decoded() Decoded { return c.decoded.sum() }
