package kube

import (
	"encoding/binary"
	"io"
	"math/bits"
)

// jsonScan finds the end of a JSON value in bytes that arrive piece by piece. It
// follows quotes and brackets only and leaves it to the decoder to check what is
// between them: so a malformed object can be skipped, and what follows it can be
// read.
type jsonScan struct {
	pos               int
	depth             int
	started, scalar   bool
	ended             bool
	inString, escaped bool
	// children counts the objects and arrays directly within the value; the first
	// of them is at [open, close).
	children    int
	open, close int
}

// scan continues with data, all bytes of the value so far, from where it stopped,
// and says whether the value ends; pos is then its end.
func (s *jsonScan) scan(data []byte) bool {
	if !s.ended {
		s.ended = s.goOn(data)
	}
	return s.ended
}

func (s *jsonScan) goOn(data []byte) bool {
	if !s.started && len(data) > 0 {
		s.started = true
		switch data[0] {
		case '"':
			s.inString, s.pos = true, 1
		case '{', '[':
		default:
			s.scalar = true
		}
	}
	if s.scalar {
		for ; s.pos < len(data); s.pos++ {
			if ends[data[s.pos]] {
				return true
			}
		}
		return false
	}
	return s.container(data)
}

// container continues within an object, an array or a string. Everything is in one
// loop, and a string is searched eight bytes at a time, because most strings are so
// short that calls, and the vector instructions of bytes.IndexByte, cost more than
// they save: this is twice as fast (BenchmarkCut).
func (s *jsonScan) container(data []byte) bool {
	i, depth, inString := s.pos, s.depth, s.inString
	if i == len(data) {
		return false
	}
	if s.escaped {
		i++
	}
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
					s.pos = i + 1
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
				if s.children++; s.children == 1 {
					s.open = i
				}
			}
		case '}', ']':
			switch depth--; {
			case depth == 0:
				s.pos = i + 1
				return true
			case depth == 1 && s.children == 1:
				s.close = i + 1
			}
		}
		i++
	}
	s.pos, s.depth, s.inString, s.escaped = len(data), depth, inString, i > len(data)
	return false
}

const (
	lowBits     = 0x0101010101010101
	highBits    = 0x8080808080808080
	quotes      = '"' * lowBits
	backslashes = '\\' * lowBits
)

// ends are the bytes that end a number or a word.
var ends = [256]bool{' ': true, '\t': true, '\r': true, '\n': true, ',': true, ']': true, '}': true, ':': true, '"': true, '{': true, '[': true}

// jsonToken returns the next byte that is not space, without consuming it.
func (f *bodyBuffer) jsonToken() (byte, error) {
	for {
		for f.at < f.end {
			switch c := f.block.data[f.at]; c {
			case ' ', '\t', '\r', '\n':
				f.at++
			default:
				return c, nil
			}
		}
		if err := f.fill(1); err != nil {
			return 0, err
		}
	}
}

// jsonValue waits until the window begins with a whole value, and returns its
// length. It does not wait for a value longer than limit: the caller skips that
// with skipJSON.
func (f *bodyBuffer) jsonValue(limit int) (s jsonScan, tooLong bool, err error) {
	return f.jsonValueUnless(limit, func(int) error { return nil })
}

// jsonValueUnless is jsonValue that stops if broken fails. It calls broken before
// it waits for bytes, with how many bytes of the window broken has seen before.
func (f *bodyBuffer) jsonValueUnless(limit int, broken func(seen int) error) (s jsonScan, tooLong bool, err error) {
	for seen := 0; !s.scan(f.window()); {
		if err := broken(seen); err != nil {
			return s, false, err
		}
		seen = len(f.window())
		if seen > limit {
			return s, true, nil
		}
		if err := f.fill(f.end - f.at + 1); err != nil {
			return s, false, unexpected(err)
		}
	}
	return s, s.pos > limit, nil
}

// skipJSON consumes a value of any length and returns its length. s has scanned what
// the window has of it.
func (f *bodyBuffer) skipJSON(s jsonScan) (int64, error) {
	from := f.offset()
	for !s.scan(f.window()) {
		f.at, s.pos = f.end, 0
		if err := f.fill(1); err != nil {
			return 0, unexpected(err)
		}
	}
	f.at += s.pos
	return f.offset() - from, nil
}

// unexpected turns an end of the body into an error.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
