package kube

import (
	"runtime"
	"time"
)

const (
	// DefaultMaxItem is how many bytes one object may have on the wire. API servers
	// take no more than 3 MiB and etcd 1.5 MiB unless told otherwise; client-go's
	// watches end at 16 MiB. Twice that leaves room for aggregated servers and
	// still bounds what a mad one can make us hold.
	DefaultMaxItem = 32 << 20

	// garbageFrame is the length from which on it is not believed that a frame of a
	// stream is only too long: the bytes in its place are something else. Any four
	// bytes of text, such as a proxy's error page, mean more.
	garbageFrame = 512 << 20

	// maxQueuedFrames and maxQueuedBytes bound what a stream reads ahead of its
	// reader; one block, or one frame that is longer, may come on top.
	maxQueuedFrames = 1024
	maxQueuedBytes  = 2 << 20

	// patience is for how long initial events may wait for others: a moment that
	// nobody notices, and thousands of events where it pays.
	patience = 50 * time.Millisecond

	// fewObjects is of how many objects that are gone something may be remembered,
	// beside as many as there are.
	fewObjects = 1024

	// parallelBytes is from how many bytes on several cores decode a batch of
	// frames: about a dozen pods, 100 µs of work against 2 µs to share it.
	parallelBytes = 128 << 10
)

// workers is how many goroutines decode what belongs together. More than a few
// would only wait for the connection and for the one who cuts.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }
