package jsonend

import (
	"encoding/binary"
	"math/bits"
)

// Member finds a member of the object that data begins with. name has its quotes and at least two
// letters. value is the rest of data from the member's value on; it is nil if data does not have
// the name and the first byte of the value, or if the name is written with escapes. Of two members
// with the name it finds the first one.
//
// Why not a Scan of each value: metadata has a dozen small values, and a Scan examines the first
// and the last block of each. Member skips the values between two blocks with members together,
// and in these blocks it examines only the places at which strings begin.
func Member(data []byte, name string) (value []byte) {
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	s, at := state{depth: 1}, 1
	for at < len(data) {
		var b block
		if n := s.deep(data[at:], &b); n > 0 {
			at += n * blockSize
		}
		if len(data)-at < blockSize {
			var last [blockSize]byte
			copy(last[copy(last[:], data[at:]):], spaces)
			if s.deep(last[:], &b) > 0 {
				return nil
			}
		}
		in, escaped := s.inStrings(&b)
		if b.backslashes&^in != 0 {
			return nil
		}
		inside := b.before(s.depth)
		for begins := in &^ (in<<1 | s.strings&1) & inside; begins != 0; begins &= begins - 1 {
			i := bits.TrailingZeros64(begins)
			if from := data[at+i:]; hasPrefix(from, name) && s.depth+b.deeper(i) == 1 {
				if value = afterColon(from[len(name):]); value != nil {
					return value
				}
			}
		}
		if inside != allBits {
			return nil
		}
		s = state{s.depth + b.deeper(blockSize), uint64(int64(in) >> 63), escaped}
		at += blockSize
	}
	return nil
}

const spaces = "                                                                "

// before is the mask of the bytes before the bracket that ends the value, all if the value does
// not end here. depth is that of the block's first byte.
func (b *block) before(depth int) uint64 {
	if bits.OnesCount64(b.closes) < depth {
		return allBits
	}
	n := 0
	for closes := b.closes; closes != 0; closes &= closes - 1 {
		n++
		below := closes&-closes - 1
		if depth+bits.OnesCount64(b.opens&below) == n {
			return below
		}
	}
	return allBits
}

// deeper is how many levels byte i is below the first byte.
func (b *block) deeper(i int) int {
	below := uint64(1)<<i - 1
	return bits.OnesCount64(b.opens&below) - bits.OnesCount64(b.closes&below)
}

// hasPrefix is bytes.HasPrefix. It compares the first four bytes as a number, which decides for
// most strings without a call.
func hasPrefix(text []byte, name string) bool {
	return len(text) >= len(name) && binary.LittleEndian.Uint32(text) == binary.LittleEndian.Uint32([]byte(name[:4])) && string(text[:len(name)]) == name
}

// afterColon skips a colon and the space around it. It returns nil if there is no colon, or
// nothing after it.
func afterColon(text []byte) []byte {
	colons := 0
	for i, c := range text {
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == ':' && colons == 0:
			colons++
		case colons == 0:
			return nil
		default:
			return text[i:]
		}
	}
	return nil
}
