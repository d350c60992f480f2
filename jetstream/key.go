package jetstream

import (
	"errors"
	"strings"

	"github.com/tarnproject/tarn"
)

// Keys of objects become keys of the bucket so that each can be derived from the other:
//
//   - a slash becomes a dot, so that each part is a token of the subject and wildcards
//     choose by it: default/web is default.web;
//   - letters, digits, - and _ stay; any other byte becomes = and two hexadecimal digits;
//   - an empty part is a single =;
//   - an underscore at the beginning is escaped too: keys that begin with one are reserved.
//
// Each key has one form, so that a form which no key has is an error.

const hexDigits = "0123456789ABCDEF"

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// escapeKey is the key of the bucket under which an object is kept.
func escapeKey(key tarn.Key) string {
	var b strings.Builder
	b.Grow(len(key) + 8)
	part := 0 // bytes of the part so far
	for i := range len(key) {
		switch c := key[i]; {
		case c == '/':
			if part == 0 {
				b.WriteByte('=')
			}
			b.WriteByte('.')
			part = -1
		case plain(c) && (c != '_' || i > 0):
			b.WriteByte(c)
		default:
			b.WriteByte('=')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
		part++
	}
	if part == 0 {
		b.WriteByte('=')
	}
	return b.String()
}

var errNoKey = errors.New("jetstream: this is not the key of an object")

// unescapeKey is the inverse of escapeKey.
func unescapeKey(text string) (tarn.Key, error) {
	var b strings.Builder
	b.Grow(len(text))
	for i, part := range strings.Split(text, ".") {
		if i > 0 {
			b.WriteByte('/')
		}
		if part == "" {
			return "", errNoKey
		}
		if part == "=" {
			continue
		}
		for j := 0; j < len(part); j++ {
			c := part[j]
			if c == '=' {
				if j+2 >= len(part) {
					return "", errNoKey
				}
				high, low := strings.IndexByte(hexDigits, part[j+1]), strings.IndexByte(hexDigits, part[j+2])
				if high < 0 || low < 0 {
					return "", errNoKey
				}
				c = byte(high<<4 | low)
				j += 2
			}
			b.WriteByte(c)
		}
	}
	key := tarn.Key(b.String())
	if escapeKey(key) != text {
		return "", errNoKey
	}
	return key, nil
}
