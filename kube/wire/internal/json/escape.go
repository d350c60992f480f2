package json

import (
	"unicode/utf16"
	"unicode/utf8"
)

// escapesValid says whether what follows each backslash is an escape.
func escapesValid(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if i >= len(text) {
			return false
		}
		switch text[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			if _, ok := hexDigits(text[i+1:]); !ok {
				return false
			}
			i += 4
		default:
			return false
		}
	}
	return true
}

// unescape appends the value of text to buf. It is not ok if the stock decoder would
// reject the text, or would replace something in it: a byte that is not UTF-8, half
// a surrogate pair.
func unescape(buf, text []byte) (_ []byte, ok bool) {
	if !utf8.Valid(text) {
		return buf, false
	}
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			from := i
			for i < len(text) && text[i] != '\\' {
				i++
			}
			buf = append(buf, text[from:i]...)
			continue
		}
		if i+1 >= len(text) {
			return buf, false
		}
		c := text[i+1]
		i += 2
		switch c {
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, ok := hexDigits(text[i:])
			if !ok {
				return buf, false
			}
			i += 4
			if utf16.IsSurrogate(r) {
				if i+2 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
					return buf, false
				}
				low, ok := hexDigits(text[i+2:])
				if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
					return buf, false
				}
				i += 6
			}
			buf = utf8.AppendRune(buf, r)
			continue
		default:
			return buf, false
		}
		buf = append(buf, c)
	}
	return buf, true
}

// hexDigits reads the four digits of a \u escape.
func hexDigits(text []byte) (r rune, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	for _, c := range text[:4] {
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
