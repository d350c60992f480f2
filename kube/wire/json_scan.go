package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// odd is the position that a decoding step returns when it met anything but what
// well-formed servers send. The object's bytes then go to the stock decoder, which
// knows what to make of them, so no step needs to say what was wrong.
const odd = -1

// deepest bounds how far values may be nested here; the stock decoder's own limit
// is 10,000, and a shared part may be found as deep as it was decoded.
const deepest = 1000

// jsonSpace returns the position of the first byte at or after i that is not white
// space, or odd where the bytes end.
func jsonSpace(data []byte, i int) int {
	if uint(i) < uint(len(data)) && data[i] > ' ' {
		return i
	}
	return jsonSpaces(data, i)
}

func jsonSpaces(data []byte, i int) int {
	for ; i < len(data); i++ {
		switch data[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return i
		}
	}
	return odd
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// jsonQuote finds the quote that ends the string whose text begins at i, eight bytes
// at a time. A plain text is its own value: ASCII, nothing escaped.
func jsonQuote(data []byte, i int) (end int, plain bool) {
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
			return odd, false
		}
		switch c := data[i]; {
		case c == '"':
			return i, plain
		case c == '\\':
			plain = false
			i += 2
		case c < ' ':
			return odd, false
		default:
			plain = plain && c < utf8.RuneSelf
			i++
		}
	}
}

// jsonNumber finds the end of the number at i and says whether it is written as an
// integer.
func jsonNumber(data []byte, i int) (end int, integer bool) {
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
		return odd, false
	}
	integer = true
	if i < len(data) && data[i] == '.' {
		i++
		if integer = false; !digits() {
			return odd, false
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if integer = false; !digits() {
			return odd, false
		}
	}
	return i, integer
}

// jsonWord returns the position after w if it stands at i.
func jsonWord(data []byte, i int, w string) int {
	if end := i + len(w); end <= len(data) && string(data[i:end]) == w {
		return end
	}
	return odd
}

// jsonSkip returns the position after the value at i, having checked its syntax as far
// as the stock decoder checks what nobody asked for.
func jsonSkip(data []byte, i, depth int) int {
	if i = jsonSpace(data, i); i == odd || depth > deepest {
		return odd
	}
	switch data[i] {
	case '"':
		end, plain := jsonQuote(data, i+1)
		if end == odd || !plain && !jsonEscapesValid(data[i+1:end]) {
			return odd
		}
		return end + 1
	case 't':
		return jsonWord(data, i, "true")
	case 'f':
		return jsonWord(data, i, "false")
	case 'n':
		return jsonWord(data, i, "null")
	case '{', '[':
		return jsonSkipNested(data, i, depth)
	default:
		i, _ = jsonNumber(data, i)
		return i
	}
}

func jsonSkipNested(data []byte, i, depth int) int {
	object := data[i] == '{'
	last := data[i] + 2 // of '{' and '[' alike
	if i = jsonSpace(data, i+1); i == odd {
		return odd
	}
	if data[i] == last {
		return i + 1
	}
	for {
		if object {
			if i = jsonSkipKey(data, i); i == odd {
				return odd
			}
		}
		if i = jsonSkip(data, i, depth+1); i == odd {
			return odd
		}
		if i = jsonSpace(data, i); i == odd {
			return odd
		}
		if data[i] == last {
			return i + 1
		}
		if data[i] != ',' {
			return odd
		}
		i++
	}
}

// jsonSkipKey returns the position after the key at i and its colon.
func jsonSkipKey(data []byte, i int) int {
	if i = jsonSpace(data, i); i == odd || data[i] != '"' {
		return odd
	}
	end, plain := jsonQuote(data, i+1)
	if end == odd || !plain && !jsonEscapesValid(data[i+1:end]) {
		return odd
	}
	if i = jsonSpace(data, end+1); i == odd || data[i] != ':' {
		return odd
	}
	return i + 1
}

// jsonExtent returns where the object, array or string at i ends if its syntax is
// right, which nobody has checked: it serves to name a part that may be known
// already, and the bytes of a known part are right.
func jsonExtent(data []byte, i int) int {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i, _ = jsonQuote(data, i+1); i == odd {
				return odd
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
	return odd
}
