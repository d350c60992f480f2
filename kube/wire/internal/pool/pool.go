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
//   - A part that nobody uses any more is released within a few garbage
//     collections.
//   - A part that a program wrote to by mistake is found: when it is used again, at
//     most once a minute, and by [Pool.Sweep]. It is not used any more then, and is
//     reported: see [Pool.StrayWritesSince].
//   - Any number of goroutines and decoders, of any types, may use one pool.
//
// A pool has two generations. A part begins in the young one, which holds it strongly, so
// that the thousandth pod of a list finds what the first one brought. After two garbage
// collections, or when there are too many, young parts are demoted. A part that two
// objects share becomes old: the pool holds it weakly, and it lives as long as one of
// them. A part that only one object has is dropped; a fingerprint remains, which shows
// when another object brings the same part.
//
// Why not weak pointers from the start: one costs about 200 bytes and 2 µs, and
// most parts never repeat. Why not count users: objects are garbage collected, and
// nobody says when one is gone.
type Pool struct {
	Seed, secondSeed maphash.Seed
	shards           [shardCount]shard
	sweep            sweep
	strays           strayLog
	// Epoch changes when a stray write is found. Parts that a decoder remembers from an
	// earlier epoch must not be used again.
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

// Key names a part by what it was made of: 128 bits of hashes with secret seeds, so
// that no one can make two parts collide.
type Key struct{ First, Second uint64 }

// Part is memory that objects share, with the data that a pool needs.
type Part struct {
	shape.Memory
	// Ref is the reference that leads to the part; nil for text, which nobody can write
	// to.
	Ref      *shape.Ref
	checksum checksum
	// Size is about how many bytes the part takes.
	Size int
	// Checked is when the part was last known to be intact.
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

// Intact says whether nobody wrote to the part since it was made.
func (s Part) Intact() bool {
	if s.Ref == nil {
		return true
	}
	d, _ := checksumOf(s.Ref, s.Memory)
	return d == s.checksum
}

// Owner tells apart the objects that use parts. A part that only one object asks for is
// not shared, however often that object is decoded.
type Owner uint32

const (
	// UnknownOwner is an object without an identity. It counts as another one each time.
	UnknownOwner Owner = 0
	// SeveralOwners is the owner of a part that more than one object asked for.
	SeveralOwners Owner = 1<<32 - 1
)

// OwnerOf makes an owner from a hash that identifies an object.
func OwnerOf(hash uint64) Owner {
	return Owner(1 + hash%(1<<32-2))
}

// MinSize is the size below which a part is not shared: a weak pointer to it would
// cost more than it saves, and without one nobody could verify it.
const MinSize = 16

// KeyOf is the key of the value of type t that a decoder makes of raw. Decoders of
// different formats must not make different values of the same type and bytes.
func (p *Pool) KeyOf(t reflect.Type, raw []byte) Key {
	return p.saltedKey(TypeSalt(t), raw)
}

// TypeSalt is a number for a type: its descriptor's address, which never changes.
func TypeSalt(t reflect.Type) uint64 {
	return uint64(uintptr((*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1]))
}

// saltedKey is the key of what is made of raw, where salt says how.
func (p *Pool) saltedKey(salt uint64, raw []byte) Key {
	return Key{FirstHalf(maphash.Bytes(p.Seed, raw), salt), p.SecondHalf(salt, raw)}
}

// FirstHalf makes the first half of a key from the hash of the bytes by Seed.
func FirstHalf(hash, salt uint64) uint64 { return hash ^ salt*0x9E3779B97F4A7C15 }

// SecondHalf makes the second half of a key.
func (p *Pool) SecondHalf(salt uint64, raw []byte) uint64 {
	return maphash.Bytes(p.secondSeed, raw) + salt
}

func (p *Pool) shard(k Key) *shard { return p.shardOf(k.First) }

func (p *Pool) shardOf(a uint64) *shard { return &p.shards[a>>(64-shardBits)] }

// Request is a lookup of a part.
type Request struct {
	Owner Owner
	Now   Seconds
	// Verify verifies the part even if it is not due, because another part is being
	// made of it. A part in a pool must be made of bytes or of intact parts;
	// otherwise its checksum would include a stray write from the start.
	Verify bool
}

// Get finds a part. A part that is due is verified first, and is not found if a program
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

// GetByFirst finds a part by the first half of its key, and returns the second half for
// the caller to compare. If there is none, before says whether another object had the
// part earlier and it was dropped or not admitted; if not, this object is remembered as
// the first.
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

// Collect releases every part that is not in use. The pool does so by itself
// after garbage collections; calling it right after [runtime.GC] is for tests and
// benchmarks.
func (p *Pool) Collect() {
	for i := range p.shards {
		p.shards[i].collect(true)
	}
}

// Settle demotes all young parts. It is called when a whole collection was read: what
// its objects do not share by then is not worth holding.
func (p *Pool) Settle() {
	for i := range p.shards {
		p.shards[i].demoteAll()
	}
}

// Stats says what a pool holds and how often it helped. The facade documents each
// field.
type Stats struct {
	Parts, Young, Old   int
	Bytes               int64
	Hits, Misses        uint64
	Promoted, Forgotten uint64
	StrayWrites         uint64
	Verified            uint64
}

// Stats counts the parts. Its time grows with their number.
func (p *Pool) Stats() Stats {
	stats := Stats{StrayWrites: p.strays.count(), Verified: p.VerifiedBytes.Load()}
	for i := range p.shards {
		p.shards[i].count(&stats)
	}
	stats.Parts = stats.Young + stats.Old
	return stats
}
