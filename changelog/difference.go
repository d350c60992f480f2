package changelog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"
)

// A difference is a list of copies from the old bytes and of literal bytes:
//
//	uvarint  length of the new bytes
//	repeated:
//	  uvarint  length of a copy << 1 | moved
//	  varint   if moved: how far the copy begins from where it is expected
//	  uvarint  length of the literal after it
//	  bytes    the literal
//
// A copy is expected to begin as far after the last one as the literal between them is
// long: that is so when a value is replaced by another of the same length, as nearly all
// values are that change with a status (versions, times, counts).

const (
	// shortestCopy is the shortest run that is worth a copy which is not expected.
	shortestCopy = 12
	// lockstep is how far an equally long replacement is looked for.
	lockstep = 40
	// indexStep is the distance of the places of the old bytes that are indexed.
	indexStep = 8
	// nearBehind and nearAhead are how far from a change its copy is looked for first.
	// nearBits is the size of the index of these places, and nearStep their distance: every
	// copy that is not too short has eight bytes at one of them.
	nearBehind, nearAhead = 192, 384
	nearBits, nearStep    = 10, 4
	// equalStep is how many bytes are compared at once.
	equalStep = 128
	// largestNew bounds what a damaged difference can claim.
	largestNew = 64 << 20
)

// AppendDifference appends to dst what turns before into after. The same bytes give the
// same difference.
func AppendDifference(dst, before, after []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(after)))
	d := differ{before: before, after: after}
	defer d.release()
	// i and j are where the rest of after and before begins, expected is where a copy is
	// expected.
	i, j, expected := 0, 0, 0
	for i < len(after) {
		n := equal(before[j:], after[i:])
		head := uint64(n) << 1
		if n > 0 && j != expected {
			dst = binary.AppendUvarint(dst, head|1)
			dst = binary.AppendVarint(dst, int64(j-expected))
		} else {
			dst = binary.AppendUvarint(dst, head)
			j = expected
		}
		i, j = i+n, j+n
		nextI, nextJ := d.next(i, j)
		dst = binary.AppendUvarint(dst, uint64(nextI-i))
		dst = append(dst, after[i:nextI]...)
		expected = j + nextI - i
		i, j = nextI, nextJ
		if j > len(before) {
			j = len(before)
		}
	}
	return dst
}

// differ finds where the bytes agree again.
type differ struct {
	before, after []byte
	// index has places of before, plus one, by the hash of the eight bytes there.
	index *[]uint32
	shift uint
	// around has places of before near the last changes, in the same way: all that it can
	// have of those before indexed.
	around  [1 << nearBits]uint32
	indexed int
}

// near is as next, for a copy from near j. It finds nearly all: a status update inserts and
// replaces fields, and what follows them stays where it was. An index of all old bytes takes
// longer than everything else, and finds short copies from anywhere.
func (d *differ) near(i, j int) (p, q int, found bool) {
	before, after := d.before, d.after
	// Of equal places, the first from j on is found, else one before it.
	end := min(j+nearAhead, len(before)-7)
	for q := max(0, j-nearBehind, d.indexed) &^ (nearStep - 1); q < min(j, end); q += nearStep {
		d.around[hash(load(before, q), 64-nearBits)] = uint32(q + 1)
	}
	for q := (end - 1) &^ (nearStep - 1); q >= j; q -= nearStep {
		d.around[hash(load(before, q), 64-nearBits)] = uint32(q + 1)
	}
	d.indexed = max(d.indexed, end)
	for p := i; p <= min(i+nearAhead, len(after)-shortestCopy); p++ {
		q := int(d.around[hash(load(after, p), 64-nearBits)]) - 1
		back, n := d.match(i, p, q)
		// A copy from before j up to the end, if more follows, is of a text that repeats.
		if n < shortestCopy || q < j && q-back+n == len(before) && p-back+n < len(after) {
			continue
		}
		return p - back, q - back, true
	}
	return 0, 0, false
}

// match is how long the copy is that has p of after and q of before, and how much of it is
// before them, from i on. It is 0 if the next eight bytes differ.
func (d *differ) match(i, p, q int) (back, n int) {
	if q < 0 || load(d.before, q) != load(d.after, p) {
		return 0, 0
	}
	for back < p-i && back < q && d.before[q-back-1] == d.after[p-back-1] {
		back++
	}
	return back, back + equal(d.before[q:], d.after[p:])
}

// next returns the places of after and before at which a copy can begin, from i and j
// on; the end of after if there is none.
func (d *differ) next(i, j int) (int, int) {
	if i >= len(d.after) {
		return len(d.after), j
	}
	before, after := d.before, d.after
	for k := 1; k <= lockstep && i+k+8 <= len(after) && j+k+8 <= len(before); k++ {
		if load(before, j+k) == load(after, i+k) {
			return i + k, j + k
		}
	}
	if len(before) < shortestCopy || len(after)-i < shortestCopy {
		return d.tail(i)
	}
	if p, q, ok := d.near(i, j); ok {
		return p, q
	}
	d.build()
	table := *d.index
	for p := i; p+shortestCopy <= len(after); p++ {
		q := int(table[hash(load(after, p), d.shift)]) - 1
		if back, n := d.match(i, p, q); n >= shortestCopy {
			return p - back, q - back
		}
	}
	return d.tail(i)
}

// tail is the common end of both, if it is worth a copy.
func (d *differ) tail(i int) (int, int) {
	n := 0
	for n < len(d.before) && n < len(d.after)-i && d.before[len(d.before)-1-n] == d.after[len(d.after)-1-n] {
		n++
	}
	if n < 4 {
		return len(d.after), len(d.before)
	}
	return len(d.after) - n, len(d.before) - n
}

// build indexes the old bytes, the first time that it is needed.
func (d *differ) build() {
	if d.index != nil {
		return
	}
	size := 1 << max(8, bits.Len(uint(len(d.before)/indexStep))+1)
	d.shift = uint(64 - bits.TrailingZeros(uint(size)))
	d.index = indexes.Get().(*[]uint32)
	if cap(*d.index) < size {
		*d.index = make([]uint32, size)
	}
	*d.index = (*d.index)[:size]
	clear(*d.index)
	table := *d.index
	// From the end, so that of equal places the first is found.
	for q := (len(d.before) - 8) / indexStep * indexStep; q >= 0; q -= indexStep {
		table[hash(load(d.before, q), d.shift)] = uint32(q + 1)
	}
}

func (d *differ) release() {
	if d.index != nil {
		indexes.Put(d.index)
	}
}

var indexes = sync.Pool{New: func() any { return new([]uint32) }}

func hash(v uint64, shift uint) uint64 { return v * 0x9e3779b97f4a7c15 >> shift }

func load(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// equal is how many bytes are the same at the beginning.
func equal(a, b []byte) int {
	most := min(len(a), len(b))
	a, b = a[:most], b[:most]
	n := 0
	for n+equalStep <= most && bytes.Equal(a[n:n+equalStep], b[n:n+equalStep]) {
		n += equalStep
	}
	for ; n+8 <= most; n += 8 {
		if x := load(a, n) ^ load(b, n); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

var errDifference = errors.New("the difference does not fit what it is of")

// Apply appends to dst what a difference makes of before. It fails if the difference is
// damaged, or of other bytes.
func Apply(dst, before, difference []byte) ([]byte, error) {
	size, difference, ok := uvarint(difference)
	if !ok || size > largestNew {
		return dst, errDifference
	}
	start, expected := len(dst), int64(0)
	for uint64(len(dst)-start) < size {
		var head, literal uint64
		if head, difference, ok = uvarint(difference); !ok {
			return dst[:start], errDifference
		}
		from, n := expected, int64(head>>1)
		if head&1 != 0 {
			moved, used := binary.Varint(difference)
			if used <= 0 {
				return dst[:start], errDifference
			}
			from, difference = from+moved, difference[used:]
		}
		if n < 0 || n > 0 && (from < 0 || from > int64(len(before)) || n > int64(len(before))-from) {
			return dst[:start], errDifference
		}
		if n > 0 {
			dst = append(dst, before[from:from+n]...)
		}
		if literal, difference, ok = uvarint(difference); !ok || literal > uint64(len(difference)) {
			return dst[:start], errDifference
		}
		dst, difference = append(dst, difference[:literal]...), difference[literal:]
		expected = from + n + int64(literal)
		if uint64(len(dst)-start) > size {
			return dst[:start], errDifference
		}
	}
	if len(difference) > 0 {
		return dst[:start], errDifference
	}
	return dst, nil
}

func uvarint(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
