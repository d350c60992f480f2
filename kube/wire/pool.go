package wire

import (
	"sync"
	"time"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
)

// Pool holds the parts that objects share: lists, maps and nested messages that
// were decoded before.
//
//   - A part that is in use is found, however old its last lookup is.
//   - A part that nobody uses any more is released within a few garbage
//     collections.
//   - A part that a program wrote to by mistake is found: when it is used
//     again, at most once a minute, and by [Pool.Sweep]. It is not used any
//     more then, and is reported by a [Guard].
//   - Any number of goroutines and decoders, of any types, may use one pool.
type Pool struct {
	parts *pool.Pool
}

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{pool.New()} }

var shared = sync.OnceValue(NewPool)

// Shared returns the pool of the process. Informers of package cache share
// through it: two informers that hold the same objects, or objects with equal
// parts, hold these parts once.
func Shared() *Pool { return shared() }

// internal returns the pool that decoders use; nil if p is nil.
func (p *Pool) internal() *pool.Pool {
	if p == nil {
		return nil
	}
	return p.parts
}

// Collect releases every part that is not in use. The pool does so by itself after
// garbage collections; calling it right after [runtime.GC] is for tests and benchmarks.
func (p *Pool) Collect() { p.parts.Collect() }

// Settle demotes all young parts: parts that several objects share are held
// weakly from now on, the others are dropped. It is called after a whole
// collection was read.
func (p *Pool) Settle() { p.parts.Settle() }

// Sweep verifies some of the parts: as many as are due for the time since the last call,
// so that each is verified every five minutes. When it finds one that a program wrote
// to, the next call verifies all of them, at most once a minute. A [Guard] calls it every
// few seconds.
func (p *Pool) Sweep(now time.Time) { p.parts.Sweep(now) }

// Verify verifies all parts at once.
func (p *Pool) Verify() { p.parts.Verify() }

// Stats counts the parts. Its time grows with their number.
func (p *Pool) Stats() Stats { return Stats(p.parts.Stats()) }

// Stats says what a pool holds and how often it helped.
type Stats struct {
	// Parts counts the parts that are held, Young and Old ones together.
	Parts, Young, Old int
	// Bytes is about what the parts take; the pool itself needs some 100 bytes for each
	// young and 200 for each old part.
	Bytes int64
	// Hits and Misses count lookups.
	Hits, Misses uint64
	// Promoted counts young parts that became old, Forgotten those that did not.
	Promoted, Forgotten uint64
	// StrayWrites counts the parts, and the objects' own memory, that a program was
	// found to have written to.
	StrayWrites uint64
	// Verified counts the bytes that were hashed or compared to find stray
	// writes.
	Verified uint64
}
