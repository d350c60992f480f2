package jsonend

import (
	"encoding/binary"
	"math/bits"
)

// Scan finds the end of one JSON value. The zero value is before its first byte.
type Scan struct {
	// Pos is how many bytes were scanned; when the value has ended, it is its length.
	Pos int
	// Children counts the objects and arrays directly within the value. The first of them
	// is at [Open, Close). Neither holds after Consume, nor for a Scan by Within.
	Children    int
	Open, Close int

	state
	started, scalar, ended bool
}

// Within is a Scan of a value that has begun: it continues outside of strings, where depth
// objects and arrays have begun and have not ended, the value itself included.
func Within(depth int) Scan { return Scan{state: state{depth: depth}, started: true} }

// Scan continues with data, all bytes of the value so far, from where it stopped, and reports
// whether the value ends. A value that is a number or a word ends before the byte that
// follows it.
func (s *Scan) Scan(data []byte) bool {
	if !s.ended {
		s.ended = s.scan(data)
	}
	return s.ended
}

// Consume says that the bytes so far are gone: the data of the next call begins after them.
func (s *Scan) Consume() { s.Pos = 0 }

func (s *Scan) scan(data []byte) bool {
	if !s.started && len(data) > 0 {
		s.started = true
		switch data[0] {
		case '"':
			s.strings, s.Pos = allBits, 1
		case '{', '[':
		default:
			s.scalar = true
		}
	}
	if s.scalar {
		for ; s.Pos < len(data); s.Pos++ {
			if ends[data[s.Pos]] {
				return true
			}
		}
		return false
	}
	if len(data)-s.Pos >= blockSize && (s.depth > 0 || s.strings == 0) && s.blocks(data) {
		return true
	}
	return s.bytes(data)
}

// ends are the bytes that end a number or a word.
var ends = [256]bool{' ': true, '\t': true, '\r': true, '\n': true, ',': true, ']': true, '}': true, ':': true, '"': true, '{': true, '[': true}

// bytes continues within an object, an array or a string, byte by byte. Everything is in one
// loop, and a string is searched eight bytes at a time, because most strings are so short that
// calls, and the vector instructions of bytes.IndexByte, cost more than they save.
func (s *Scan) bytes(data []byte) bool {
	i, depth, inString := s.Pos, s.depth, s.strings != 0
	if i == len(data) {
		return false
	}
	i += int(s.escaped)
	for i < len(data) {
		if inString {
			if i+8 <= len(data) {
				w := binary.LittleEndian.Uint64(data[i:])
				q, b := w^quotes, w^backslashes
				// The lowest bit set belongs to the first byte that became zero.
				hit := ((q-lowBits)&^q | (b-lowBits)&^b) & highBits
				if hit == 0 {
					i += 8
					continue
				}
				i += bits.TrailingZeros64(hit) / 8
			}
			switch data[i] {
			case '"':
				if depth == 0 {
					s.Pos = i + 1
					return true
				}
				// Usually the next string follows at once.
				if inString = i+2 < len(data) && data[i+2] == '"' && (data[i+1] == ':' || data[i+1] == ','); inString {
					i += 2
				}
			case '\\':
				i++ // skip the escaped byte
			}
			i++
			continue
		}
		switch data[i] {
		case '"':
			inString = true
		case '{', '[':
			if depth++; depth == 2 {
				s.childBegins(i)
			}
		case '}', ']':
			switch depth--; {
			case depth <= 0:
				s.Pos = i + 1
				return true
			case depth == 1:
				s.childEnds(i + 1)
			}
		}
		i++
	}
	s.Pos, s.depth, s.strings, s.escaped = len(data), depth, 0, 0
	if inString {
		s.strings = allBits
	}
	if i > len(data) {
		s.escaped = 1
	}
	return false
}

func (s *Scan) childBegins(at int) {
	if s.Children++; s.Children == 1 {
		s.Open = at
	}
}

func (s *Scan) childEnds(at int) {
	if s.Children == 1 {
		s.Close = at
	}
}
