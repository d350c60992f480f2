package share

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"unsafe"
)

// seed keys the hashes. It is secret, and all sharers use the same one so that
// they find each other's parts.
var (
	seed   = maphash.MakeSeed()
	secret = maphash.String(seed, "") | 1
)

// mix adds x to a hash, and differently for each salt, which is odd.
func mix(h, x, salt uint64) uint64 {
	hi, lo := bits.Mul64(h^x^0x9E3779B97F4A7C15, salt)
	return hi ^ lo
}

// salted returns the nth of a sequence of odd numbers without pattern.
func salted(n uint64) uint64 {
	n = (n + 1) * 0x9E3779B97F4A7C15
	n = (n ^ n>>30) * 0xBF58476D1CE4E5B9
	n = (n ^ n>>27) * 0x94D049BB133111EB
	return n ^ n>>31 | 1
}

func hashString(s string) uint64 {
	return hashBytes(unsafe.Pointer(unsafe.StringData(s)), uintptr(len(s)))
}

// hashBytes hashes short runs by words in place, as most strings of an object are
// short and maphash costs three calls. A hit is compared, so that a collision
// costs sharing and nothing else.
func hashBytes(at unsafe.Pointer, n uintptr) uint64 {
	switch {
	case n > 32:
		return maphash.Bytes(seed, unsafe.Slice((*byte)(at), n))
	case n > 16:
		h := mix(word(at)^uint64(n), word(unsafe.Add(at, 8)), secret)
		return mix(h^word(unsafe.Add(at, n-16)), word(unsafe.Add(at, n-8)), secret)
	case n >= 8:
		return mix(word(at)^uint64(n)<<56, bits.RotateLeft64(word(unsafe.Add(at, n-8)), 32), secret)
	case n >= 4:
		return mix(uint64(half(at))<<32|uint64(half(unsafe.Add(at, n-4))), uint64(n), secret)
	case n > 0:
		first, middle, last := *(*byte)(at), *(*byte)(unsafe.Add(at, n/2)), *(*byte)(unsafe.Add(at, n-1))
		return mix(uint64(first)<<16|uint64(middle)<<8|uint64(last), uint64(n), secret)
	default:
		return secret
	}
}

func word(at unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(at)[:]) }
func half(at unsafe.Pointer) uint32 { return binary.LittleEndian.Uint32((*[4]byte)(at)[:]) }
