package jsonend

import "math/bits"

const blockSize = 64

// block says what is where in 64 bytes of a text: bit i is that of byte i.
type block struct {
	quotes, backslashes uint64
	// opens are { and [, closes } and ].
	opens, closes uint64
}

// state is how far a block depends on what is before it.
type state struct {
	depth int
	// strings has all bits set in a string, and none outside; escaped is 1 if the next byte
	// follows a backslash that escapes it, else 0.
	strings, escaped uint64
}

// blocks continues within an object or an array, as long as there are whole blocks.
func (s *Scan) blocks(data []byte) (ended bool) {
	for {
		var b block
		s.Pos += s.deep(data[s.Pos:], &b) * blockSize
		if len(data)-s.Pos < blockSize {
			return false
		}
		if s.shallow(&b, data) {
			return true
		}
	}
}

// shallow goes through the block at Pos in data at which deep has stopped.
func (s *Scan) shallow(b *block, data []byte) (ended bool) {
	in, escaped := s.inStrings(b)
	if b.backslashes&^in != 0 {
		// Only in strings a backslash escapes something. Elsewhere it is a mistake, and in is
		// right only up to there.
		return s.bytes(data[:s.Pos+blockSize])
	}
	s.strings, s.escaped = uint64(int64(in)>>63), escaped
	for both := b.opens | b.closes; both != 0; both &= both - 1 {
		i := bits.TrailingZeros64(both)
		// Without a branch, because the processor mispredicts which bracket comes next.
		opens := int(b.opens >> i & 1)
		s.depth += 2*opens - 1
		switch {
		case s.depth > 2:
		case opens > 0 && s.depth == 2:
			s.childBegins(s.Pos + i)
		case opens == 0 && s.depth <= 0:
			s.Pos += i + 1
			return true
		case opens == 0 && s.depth == 1:
			s.childEnds(s.Pos + i + 1)
		}
	}
	s.Pos += blockSize
	return false
}

// deepGeneric is deep for any processor.
func (s *state) deepGeneric(data []byte, stop *block) (n int) {
	for ; len(data) >= blockSize; data = data[blockSize:] {
		*stop = find((*[blockSize]byte)(data))
		in, escaped := s.inStrings(stop)
		stop.opens, stop.closes = stop.opens&^in, stop.closes&^in
		// The least depth, in whatever order the brackets are. A pair with nothing in it, as
		// managed fields have many, does not count.
		least := s.depth - bits.OnesCount64(stop.closes&^(stop.opens<<1))
		if stop.backslashes&^in != 0 || least < 2 {
			return n
		}
		*s = state{s.depth + bits.OnesCount64(stop.opens) - bits.OnesCount64(stop.closes), uint64(int64(in) >> 63), escaped}
		n++
	}
	return n
}

// inStrings has the bytes of a block that are in strings, without the quotes that end them;
// escaped is 1 if the byte after the block is escaped.
func (s *state) inStrings(b *block) (in, escaped uint64) {
	after, escaped := escapes(b.backslashes, s.escaped)
	return parity(b.quotes&^after) ^ s.strings, escaped
}

// escapes has the bytes that backslashes escape, other than backslashes: those that follow a
// run of an odd number of them. first and next are 1 if the block's first byte is escaped by
// what is before it, and the one after its last byte by what is in it.
func escapes(backslashes, first uint64) (escaped, next uint64) {
	runs := backslashes &^ first
	follows := runs << 1 &^ runs
	// To add the first bit of a run moves it to the byte that follows. A run that begins at
	// an odd place and is followed by an even one has an odd length, and the other way round.
	sum, next := bits.Add64(runs, runs&^(runs<<1)&oddPlaces, 0)
	return follows&oddPlaces ^ sum&^runs | first, next
}

const (
	allBits   = ^uint64(0)
	oddPlaces = 0xaaaaaaaaaaaaaaaa
)

// parity has bit i set if an odd number of the bits up to i is set.
func parity(m uint64) uint64 {
	m ^= m << 1
	m ^= m << 2
	m ^= m << 4
	m ^= m << 8
	m ^= m << 16
	return m ^ m<<32
}
