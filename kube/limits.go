package kube

import (
	"runtime"
	"time"
)

const (
	// DefaultMaxItem is how many bytes one object may have on the wire. API servers
	// accept at most 3 MiB and etcd 1.5 MiB by default; client-go's watches end at
	// 16 MiB. Twice that leaves room for aggregated servers and still bounds the
	// memory that a broken server can cost.
	DefaultMaxItem = 32 << 20

	// garbageFrame is the frame length from which on the bytes are not a length at
	// all. Any four bytes of text, such as a proxy's error page, are larger.
	garbageFrame = 512 << 20

	// maxQueuedFrames and maxQueuedBytes bound what a stream reads ahead of its
	// reader; one block, or one longer frame, may exceed them.
	maxQueuedFrames = 1024
	maxQueuedBytes  = 2 << 20

	// initialEventDelay is how long initial events may wait for others: too short
	// to notice, and long enough for thousands of events.
	initialEventDelay = 50 * time.Millisecond

	// spareStates is how many states of deleted objects a decoder may remember, in
	// addition to those of the objects that exist.
	spareStates = 1024

	// parallelBytes is the size from which on several cores decode a batch of
	// frames: about a dozen pods, 100 µs of work against 2 µs to distribute it.
	parallelBytes = 128 << 10
)

// workers is how many goroutines decode a list or a batch. More would only wait for
// the connection and for the goroutine that cuts the body.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }
