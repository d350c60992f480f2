package metrics

import (
	"time"

	"github.com/tarnproject/tarn"
)

// Observed is what can be shown. A *tarn.Replica[T] is, for any T.
type Observed interface {
	Health() tarn.Health
	Len() int
	Subscribers() []tarn.SubscriberLag
}

// Decoded is how much a source has decoded, as package kube counts it.
type Decoded struct {
	Objects, Bytes uint64
	Time           time.Duration
}

// Decoding adapts the method Decoded of a client or source of package kube to
// [Collector.AddDecoding]. It takes the type by its shape, so that code without
// Kubernetes need not import it.
func Decoding[D ~struct {
	Objects, Bytes uint64
	Time           time.Duration
}](read func() D) func() Decoded {
	return func() Decoded { return Decoded(read()) }
}

// PoolStats is what a pool of shared parts holds, as package kube/wire counts it.
type PoolStats struct {
	Parts, Young, Old   int
	Bytes               int64
	Hits, Misses        uint64
	Promoted, Forgotten uint64
	StrayWrites         uint64
	Verified            uint64
}

// Pooling makes what [Collector.AddPool] wants of the method Stats of a pool of
// package kube/wire. See [Decoding].
func Pooling[S ~struct {
	Parts, Young, Old   int
	Bytes               int64
	Hits, Misses        uint64
	Promoted, Forgotten uint64
	StrayWrites         uint64
	Verified            uint64
}](read func() S) func() PoolStats {
	return func() PoolStats { return PoolStats(read()) }
}

// DiskStats are figures of a directory, as package sqlite gives them.
type DiskStats struct{ Bytes, LogBytes, Failures int64 }

// Disk makes what [Collector.AddDisk] wants of the method Stats of a database of
// package sqlite. See [Decoding].
func Disk[S ~struct{ Bytes, LogBytes, Failures int64 }](read func() S) func() DiskStats {
	return func() DiskStats { return DiskStats(read()) }
}
