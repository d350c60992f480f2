package pool

import (
	"hash/maphash"
	"reflect"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// Pool holds the parts that objects share: lists, maps and nested messages that
// were decoded before.
//
//   - A part that is in use is found, however long ago it was last asked for.
//   - A part that nobody uses any more is let go of within a few garbage
//     collections.
//   - A part that a program wrote to by mistake is found: when it is used again, at
//     most once a minute, and by [Pool.Sweep]. It is not used any more then, and
//     reported to those who hold objects: see [..Guard].
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
	Seed, secondSeed maphash.Seed
	shards           [shardCount]shard
	sweep            sweep
	strays           strayLog
	// Epoch changes when a part was found written to: what a decoder remembers from
	// another one is not to be used again.
	Epoch atomic.Uint64
	// VerifiedBytes counts the bytes that were hashed to verify parts.
	VerifiedBytes atomic.Uint64
}

// New returns an empty pool.
func New() *Pool {
	p := &Pool{Seed: maphash.MakeSeed(), secondSeed: maphash.MakeSeed()}
	afterEachGC(weak.Make(p))
	return p
}

// Key names a part by what it was made of: 128 bits, of hashes whose seeds nobody
// outside knows, so that no one can make two parts collide.
type Key struct{ First, Second uint64 }

// Part is a part with what is needed to put it into a pool.
type Part struct {
	shape.Memory
	// Ref leads to the part; nil for text, which nobody can write to.
	Ref      *shape.Ref
	checksum checksum
	// Size is about how many bytes the part takes.
	Size int
	// Checked is when the part was last known to be as it was made.
	Checked Seconds
}

// NewPart describes a part that was just made.
func NewPart(r *shape.Ref, x shape.Memory, size int, now Seconds) Part {
	s := Part{Memory: x, Ref: r, Size: size, Checked: now}
	if r != nil {
		s.checksum, _ = checksumOf(r, x)
	}
	return s
}

// Intact says whether the part is as it was made.
func (s Part) Intact() bool {
	if s.Ref == nil {
		return true
	}
	d, _ := checksumOf(s.Ref, s.Memory)
	return d == s.checksum
}

// Owner tells the objects that use parts apart. A part that only ever one object
// asked for is not shared, however often that object comes by.
type Owner uint32

const (
	// UnknownOwner is an object that is not told apart: always another one.
	UnknownOwner Owner = 0
	// SeveralOwners marks a part that more than one object asked for.
	SeveralOwners Owner = 1<<32 - 1
)

// OwnerOf makes an owner of what identifies an object.
func OwnerOf(hash uint64) Owner {
	return Owner(1 + hash%(1<<32-2))
}

// MinSize is the size below which a part is not shared: a weak pointer to it would
// cost more than it saves, and without one nobody could verify it.
const MinSize = 16

// KeyOf is the name of what a decoder makes of raw for type t. Decoders of
// different formats must not mean different things by the same type and bytes.
func (p *Pool) KeyOf(t reflect.Type, raw []byte) Key {
	return p.saltedKey(TypeSalt(t), raw)
}

// TypeSalt is a number for a type: its descriptor's address, which never changes.
func TypeSalt(t reflect.Type) uint64 {
	return uint64(uintptr((*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1]))
}

// saltedKey is the name of what raw means where salt tells the meaning.
func (p *Pool) saltedKey(salt uint64, raw []byte) Key {
	return Key{FirstHalf(maphash.Bytes(p.Seed, raw), salt), p.SecondHalf(salt, raw)}
}

// FirstHalf makes the first half of a key of the hash of raw by seedA.
func FirstHalf(hash, salt uint64) uint64 { return hash ^ salt*0x9E3779B97F4A7C15 }

func (p *Pool) SecondHalf(salt uint64, raw []byte) uint64 {
	return maphash.Bytes(p.secondSeed, raw) + salt
}

func (p *Pool) shard(k Key) *shard { return p.shardOf(k.First) }

func (p *Pool) shardOf(a uint64) *shard { return &p.shards[a>>(64-shardBits)] }

// Request is how a part is asked for.
type Request struct {
	Owner Owner
	Now   Seconds
	// Verify asks that the part be Verify whether it is due or not, because another
	// part is being made of it: what goes into a pool must be made of bytes, or of parts
	// that are as they should be, or a write would be there from the start.
	Verify bool
}

// Get finds a part. One that is due is verified first, and not found if a program
// wrote to it.
func (p *Pool) Get(k Key, r Request) (Part, bool) {
	s := p.shard(k)
	s.mu.Lock()
	e, due, found := s.find(k.First, r)
	s.mu.Unlock()
	if !found || e.second != k.Second || due && !p.intact(k.First, e) {
		return Part{}, false
	}
	return e.toPart(), true
}

// GetByFirst finds what is filed under the first half of a key, and returns the second,
// which is to be compared. If there is nothing, it says whether another object had it
// before it was forgotten, or was not admitted, and makes a note of it for the next
// one.
func (p *Pool) GetByFirst(a uint64, r Request) (x Part, b uint64, found, before bool) {
	s := p.shardOf(a)
	s.mu.Lock()
	e, due, found := s.find(a, r)
	if !found {
		if before = s.forgotten.knows(a, r.Owner); !before {
			s.forgotten.note(a, r.Owner)
		}
	}
	s.mu.Unlock()
	if !found || due && !p.intact(a, e) {
		return Part{}, 0, false, before
	}
	return e.toPart(), e.second, true, true
}

// Put offers a part, and returns the one to use: another may have been there first.
func (p *Pool) Put(k Key, x Part, by Owner) Part {
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
		p.shards[i].demoteAll()
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
	stats := Stats{StrayWrites: p.strays.count(), Verified: p.VerifiedBytes.Load()}
	for i := range p.shards {
		p.shards[i].count(&stats)
	}
	stats.Parts = stats.Young + stats.Old
	return stats
}
