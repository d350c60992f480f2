package wire

import (
	"hash/maphash"
	"reflect"
	"sync/atomic"
	"unsafe"
	"weak"
)

// Pool holds the parts that objects share: lists, maps and nested messages that
// were decoded before.
//
//   - A part that is in use is found, however long ago it was last asked for.
//   - A part that nobody uses any more is let go of within a few garbage
//     collections.
//   - A part that a program wrote to by mistake is found: when it is used again, at
//     most once a minute, and by [Pool.Sweep]. It is not used any more then, and
//     reported to those who hold objects: see [Guard].
//   - Any number of goroutines and decoders, of any types, may use one pool.
//
// A part is young first: held strongly, so that the thousandth pod of a list
// finds what the first one brought. After two garbage collections, or when there
// are too many, a young part that two objects were seen to share becomes old:
// the pool now holds it weakly, and it lives as long as one of them. A part that
// stayed alone is forgotten, but for a fingerprint that tells when it comes back.
//
// Why not weak pointers from the start: one costs about 200 bytes and 2 µs, and
// most parts never repeat. Why not count users: objects are garbage collected,
// nobody says when one is gone.
type Pool struct {
	seedA, seedB maphash.Seed
	shards       [shardCount]shard
	sweep        sweep
	strays       strayLog
	// epoch changes when a part was found written to: what a decoder remembers from
	// another one is not to be used again.
	epoch atomic.Uint64
	// verified counts the bytes that were hashed to verify parts.
	verified atomic.Uint64
}

// NewPool returns an empty pool.
func NewPool() *Pool {
	p := &Pool{seedA: maphash.MakeSeed(), seedB: maphash.MakeSeed()}
	onCollection(weak.Make(p))
	return p
}

// key names a part by what it was made of: 128 bits, of hashes whose seeds nobody
// outside knows, so that no one can make two parts collide.
type key struct{ a, b uint64 }

// sample is a part with what is needed to put it into a pool.
type sample struct {
	part
	// ref leads to the part; nil for text, which nobody can write to.
	ref    *ref
	digest digest
	// size is about how many bytes the part takes.
	size int
	// checked is when the part was last known to be as it was made.
	checked seconds
}

// sampleOf describes a part that was just made.
func sampleOf(r *ref, x part, size int, now seconds) sample {
	s := sample{part: x, ref: r, size: size, checked: now}
	if r != nil {
		s.digest, _ = digestOf(r, x)
	}
	return s
}

// intact says whether the part is as it was made.
func (s sample) intact() bool {
	if s.ref == nil {
		return true
	}
	d, _ := digestOf(s.ref, s.part)
	return d == s.digest
}

// owner tells the objects that use parts apart. A part that only ever one object
// asked for is not shared, however often that object comes by.
type owner uint32

const (
	// anyone is an object that is not told apart: always another one.
	anyone owner = 0
	// several marks a part that more than one object asked for.
	several owner = 1<<32 - 1
)

// ownerOf makes an owner of what identifies an object.
func ownerOf(hash uint64) owner {
	return owner(1 + hash%(1<<32-2))
}

// worthSharing is the size below which a part is not shared: a weak pointer to it would
// cost more than it saves, and without one nobody could verify it.
const worthSharing = 16

// key is the name of what a decoder makes of raw for type t. Decoders of
// different formats must not mean different things by the same type and bytes.
func (p *Pool) key(t reflect.Type, raw []byte) key {
	return p.saltedKey(typeSalt(t), raw)
}

// typeSalt is a number for a type: its descriptor's address, which never changes.
func typeSalt(t reflect.Type) uint64 {
	return uint64(uintptr((*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1]))
}

// saltedKey is the name of what raw means where salt tells the meaning.
func (p *Pool) saltedKey(salt uint64, raw []byte) key {
	return key{firstHalf(maphash.Bytes(p.seedA, raw), salt), p.secondHalf(salt, raw)}
}

// firstHalf makes the first half of a key of the hash of raw by seedA.
func firstHalf(hash, salt uint64) uint64 { return hash ^ salt*0x9E3779B97F4A7C15 }

func (p *Pool) secondHalf(salt uint64, raw []byte) uint64 {
	return maphash.Bytes(p.seedB, raw) + salt
}

func (p *Pool) shard(k key) *shard { return p.shardOf(k.a) }

func (p *Pool) shardOf(a uint64) *shard { return &p.shards[a>>(64-shardBits)] }

// request is how a part is asked for.
type request struct {
	by  owner
	now seconds
	// verified asks that the part be verified whether it is due or not, because another
	// part is being made of it: what goes into a pool must be made of bytes, or of parts
	// that are as they should be, or a write would be there from the start.
	verified bool
}

// get finds a part. One that is due is verified first, and not found if a program
// wrote to it.
func (p *Pool) get(k key, r request) (sample, bool) {
	s := p.shard(k)
	s.mu.Lock()
	e, due, found := s.find(k.a, r)
	s.mu.Unlock()
	if !found || e.b != k.b || due && !p.intact(k.a, e) {
		return sample{}, false
	}
	return e.sample(), true
}

// sight finds what is filed under the first half of a key, and returns the second,
// which is to be compared. If there is nothing, it says whether another object had it
// before it was forgotten, or was not admitted, and makes a note of it for the next
// one.
func (p *Pool) sight(a uint64, r request) (x sample, b uint64, found, before bool) {
	s := p.shardOf(a)
	s.mu.Lock()
	e, due, found := s.find(a, r)
	if !found {
		if before = s.forgotten.knows(a, r.by); !before {
			s.forgotten.note(a, r.by)
		}
	}
	s.mu.Unlock()
	if !found || due && !p.intact(a, e) {
		return sample{}, 0, false, before
	}
	return e.sample(), e.b, true, true
}

// put offers a part, and returns the one to use: another may have been there first.
func (p *Pool) put(k key, x sample, by owner) sample {
	s := p.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(k, x, by)
}

// Collect lets go of every part that is not in use. The pool does so by itself
// after garbage collections; calling it right after [runtime.GC] is for tests and
// for those who measure.
func (p *Pool) Collect() {
	for i := range p.shards {
		p.shards[i].collect(true)
	}
}

// Settle ends the youth of all parts. It is called when a whole collection was read: what
// its objects did not share by then is not held for them any longer.
func (p *Pool) Settle() {
	for i := range p.shards {
		p.shards[i].settle()
	}
}

// Stats is what a pool holds and what it was good for.
type Stats struct {
	// Parts are those held, Young and Old ones together.
	Parts, Young, Old int
	// Bytes is about what the parts take; what the pool itself needs is some 100
	// bytes for each young and 200 for each old part.
	Bytes int64
	// Hits and Misses count lookups.
	Hits, Misses uint64
	// Promoted counts young parts that became old, Forgotten those that did not.
	Promoted, Forgotten uint64
	// StrayWrites counts the parts, and the objects' own memory, that a program was
	// found to have written to.
	StrayWrites uint64
	// Verified counts the bytes that were hashed or compared to find that out.
	Verified uint64
}

// Stats counts. It takes time by the number of parts.
func (p *Pool) Stats() Stats {
	stats := Stats{StrayWrites: p.strays.count(), Verified: p.verified.Load()}
	for i := range p.shards {
		p.shards[i].count(&stats)
	}
	stats.Parts = stats.Young + stats.Old
	return stats
}
