package json

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// irregular is the position that a decoding step returns when it finds anything
// but what well-formed servers send. The stock decoder then decodes the object,
// so no step needs to say what was wrong.
const irregular = -1

// maxDepth bounds how far values may be nested here; the stock decoder's own limit
// is 10,000, and a shared part may be found as deep as it was decoded.
const maxDepth = 1000

// skipSpace returns the position of the first byte at or after i that is not white
// space, or irregular where the bytes end.
func skipSpace(data []byte, i int) int {
	if uint(i) < uint(len(data)) && data[i] > ' ' {
		return i
	}
	return skipSpaces(data, i)
}

func skipSpaces(data []byte, i int) int {
	for ; i < len(data); i++ {
		switch data[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return i
		}
	}
	return irregular
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// findQuote finds the quote that ends the string whose text begins at i, eight bytes
// at a time. A plain text is its own value: ASCII, nothing escaped.
func findQuote(data []byte, i int) (end int, plain bool) {
	plain = true
	for {
		for i+8 <= len(data) {
			w := binary.LittleEndian.Uint64(data[i:])
			quote, slash := w^(ones*'"'), w^(ones*'\\')
			// The lowest marked byte is a true find; those above it may not be.
			stop := ((quote - ones) &^ quote) | ((slash - ones) &^ slash) | ((w - ones*' ') &^ w)
			stop &= highs
			if stop == 0 {
				plain = plain && w&highs == 0
				i += 8
				continue
			}
			n := bits.TrailingZeros64(stop) / 8
			plain = plain && w&highs&(1<<(8*n)-1) == 0
			i += n
			break
		}
		if i >= len(data) {
			return irregular, false
		}
		switch c := data[i]; {
		case c == '"':
			return i, plain
		case c == '\\':
			plain = false
			i += 2
		case c < ' ':
			return irregular, false
		default:
			plain = plain && c < utf8.RuneSelf
			i++
		}
	}
}

// scanNumber finds the end of the number at i and says whether it is written as an
// integer.
func scanNumber(data []byte, i int) (end int, integer bool) {
	if i < len(data) && data[i] == '-' {
		i++
	}
	digits := func() bool {
		from := i
		for i < len(data) && data[i]-'0' < 10 {
			i++
		}
		return i > from
	}
	if i < len(data) && data[i] == '0' {
		i++
	} else if !digits() {
		return irregular, false
	}
	integer = true
	if i < len(data) && data[i] == '.' {
		i++
		if integer = false; !digits() {
			return irregular, false
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if integer = false; !digits() {
			return irregular, false
		}
	}
	return i, integer
}

// matchWord returns the position after w if the bytes at i begin with it.
func matchWord(data []byte, i int, w string) int {
	if end := i + len(w); end <= len(data) && string(data[i:end]) == w {
		return end
	}
	return irregular
}

// skipValue returns the position after the value at i. It checks the syntax as
// far as the stock decoder checks values that it skips.
func skipValue(data []byte, i, depth int) int {
	if i = skipSpace(data, i); i == irregular || depth > maxDepth {
		return irregular
	}
	switch data[i] {
	case '"':
		end, plain := findQuote(data, i+1)
		if end == irregular || !plain && !escapesValid(data[i+1:end]) {
			return irregular
		}
		return end + 1
	case 't':
		return matchWord(data, i, "true")
	case 'f':
		return matchWord(data, i, "false")
	case 'n':
		return matchWord(data, i, "null")
	case '{', '[':
		return skipNested(data, i, depth)
	default:
		i, _ = scanNumber(data, i)
		return i
	}
}

func skipNested(data []byte, i, depth int) int {
	object := data[i] == '{'
	last := data[i] + 2 // holds for '{' and '['
	if i = skipSpace(data, i+1); i == irregular {
		return irregular
	}
	if data[i] == last {
		return i + 1
	}
	for {
		if object {
			if i = skipKey(data, i); i == irregular {
				return irregular
			}
		}
		if i = skipValue(data, i, depth+1); i == irregular {
			return irregular
		}
		if i = skipSpace(data, i); i == irregular {
			return irregular
		}
		if data[i] == last {
			return i + 1
		}
		if data[i] != ',' {
			return irregular
		}
		i++
	}
}

// skipKey returns the position after the key at i and its colon.
func skipKey(data []byte, i int) int {
	if i = skipSpace(data, i); i == irregular || data[i] != '"' {
		return irregular
	}
	end, plain := findQuote(data, i+1)
	if end == irregular || !plain && !escapesValid(data[i+1:end]) {
		return irregular
	}
	if i = skipSpace(data, end+1); i == irregular || data[i] != ':' {
		return irregular
	}
	return i + 1
}

// extent returns where the object, array or string at i ends, if its syntax is
// right. It does not check the syntax: it names a part that may be known
// already, and the bytes of a known part are right.
func extent(data []byte, i int) int {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i, _ = findQuote(data, i+1); i == irregular {
				return irregular
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return irregular
}
