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
	small        atomic.Pointer[smallValues]
	mutations    atomic.Uint64
	// epoch changes when parts have become doubtful: what was met in another one is
	// not to be used again.
	epoch atomic.Uint64
}

// NewPool returns an empty pool.
func NewPool() *Pool {
	p := &Pool{seedA: maphash.MakeSeed(), seedB: maphash.MakeSeed()}
	p.small.Store(newSmallValues())
	onCollection(weak.Make(p))
	return p
}

// key names a part by what it was made of: 128 bits, of hashes whose seeds nobody
// outside knows, so that no one can make two parts collide.
type key struct{ a, b uint64 }

// part is shared memory: the first element of a slice, the bytes of a string, a
// map, or what a pointer points to; n is the length of slices and strings.
type part struct {
	ptr unsafe.Pointer
	n   int
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

// get finds a part for an object that is not told apart from others.
func (p *Pool) get(k key) (part, bool) {
	return p.shard(k).get(k, anyone)
}

// put offers a part of about size bytes, and returns the one to use: another may
// have been there first.
func (p *Pool) put(k key, x part, size int) part {
	return p.shard(k).put(k, x, size, anyone)
}

// Collect lets go of every part that is not in use. The pool does so by itself
// after garbage collections; calling it right after [runtime.GC] is for tests and
// for those who measure.
func (p *Pool) Collect() {
	for i := range p.shards {
		p.shards[i].collect(true)
	}
}

// Distrust lets go of every part, in use or not: what is decoded from now on has
// nothing in common with what was decoded before. It is for those who have seen that
// objects are not what they were made of, because someone wrote to a part that they
// share.
func (p *Pool) Distrust() {
	for i := range p.shards {
		p.shards[i].clear()
	}
	p.epoch.Add(1)
}

// mutated notes that a part was found to have been changed by someone.
func (p *Pool) mutated() {
	p.mutations.Add(1)
	p.epoch.Add(1)
}

// Stats is what a pool holds and what it was good for.
type Stats struct {
	// Parts are those held, Young and Old ones together.
	Parts, Young, Old int
	// Bytes is about what the parts take; what the pool itself needs is some 80
	// bytes for each young and 200 for each old part.
	Bytes int64
	// Hits and Misses count lookups.
	Hits, Misses uint64
	// Promoted counts young parts that became old, Forgotten those that did not.
	Promoted, Forgotten uint64
	// Mutations counts parts that were found to have been changed by someone.
	Mutations uint64
}

// Stats counts. It takes time by the number of parts.
func (p *Pool) Stats() Stats {
	stats := Stats{Mutations: p.mutations.Load()}
	for i := range p.shards {
		p.shards[i].count(&stats)
	}
	stats.Parts = stats.Young + stats.Old
	return stats
}
