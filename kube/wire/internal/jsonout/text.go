package jsonout

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
	"unsafe"
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special finds the bytes among eight that cannot stand in a string as they are: those
// below a space, quotes, backslashes, the three that would matter within HTML, and all of
// more than seven bits. The lowest bit set belongs to the first of them.
func special(w uint64) uint64 {
	return (w | (w - 0x20*lowBits) | zero(w^'"'*lowBits) | zero(w^'\\'*lowBits) |
		zero(w^'&'*lowBits) | zero(w^'<'*lowBits) | zero(w^'>'*lowBits)) & highBits
}

func zero(w uint64) uint64 { return w - lowBits }

// safe are the bytes that stand in a string as they are.
var safe = func() (safe [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		safe[c] = c != '"' && c != '\\' && c != '&' && c != '<' && c != '>'
	}
	return safe
}()

// safeEnd returns the index of the first byte, from i on, that is not safe, or the length.
// It looks at eight bytes together, because most strings have nothing to escape.
func safeEnd(raw []byte, i int) int {
	for i < len(raw) {
		if i+8 <= len(raw) {
			hit := special(binary.LittleEndian.Uint64(raw[i:]))
			if hit == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(hit) / 8
		}
		if !safe[raw[i]] {
			break
		}
		i++
	}
	return i
}

// isSafe says whether a text can stand as it is.
func isSafe(s string) bool {
	raw := unsafe.Slice(unsafe.StringData(s), len(s))
	switch n := len(raw); {
	case n >= 8:
		for i := 0; i < n-8; i += 8 {
			if special(binary.LittleEndian.Uint64(raw[i:])) != 0 {
				return false
			}
		}
		return special(binary.LittleEndian.Uint64(raw[n-8:])) == 0
	case n >= 4: // its first and its last four bytes
		return special(uint64(binary.LittleEndian.Uint32(raw))|uint64(binary.LittleEndian.Uint32(raw[n-4:]))<<32) == 0
	default:
		for _, c := range raw {
			if !safe[c] {
				return false
			}
		}
		return true
	}
}

// appendText appends a string. Most have nothing to escape.
func appendText(buf []byte, s string) []byte {
	if !isSafe(s) {
		return appendEscaped(buf, s)
	}
	begin, end := len(buf), len(buf)+len(s)+2
	if end > cap(buf) {
		buf = slices.Grow(buf, len(s)+2)
	}
	buf = buf[:end]
	buf[begin] = '"'
	copy(buf[begin+1:], s)
	buf[end-1] = '"'
	return buf
}

func appendEscaped(buf []byte, s string) []byte {
	buf = append(buf, '"')
	raw := unsafe.Slice(unsafe.StringData(s), len(s))
	done := 0
	for i := safeEnd(raw, 0); i < len(raw); i = safeEnd(raw, i) {
		c := raw[i]
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		}
		buf = append(buf, s[done:i]...)
		buf = escape(buf, s[i:i+size])
		i += size
		done = i
	}
	buf = append(buf, s[done:]...)
	return append(buf, '"')
}

const hex = "0123456789abcdef"

// escape writes one character that cannot stand as it is.
func escape(buf []byte, char string) []byte {
	switch c := char[0]; c {
	case '"', '\\':
		return append(buf, '\\', c)
	case '\b':
		return append(buf, `\b`...)
	case '\f':
		return append(buf, `\f`...)
	case '\n':
		return append(buf, `\n`...)
	case '\r':
		return append(buf, `\r`...)
	case '\t':
		return append(buf, `\t`...)
	default:
		switch {
		case c < utf8.RuneSelf:
			return append(buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		case char == "\u2028":
			return append(buf, `\u2028`...)
		case char == "\u2029":
			return append(buf, `\u2029`...)
		}
		return append(buf, `\ufffd`...)
	}
}
