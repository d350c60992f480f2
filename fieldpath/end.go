package fieldpath

import "strings"

// End returns where the path at the beginning of text ends: at the first byte that
// is one of stops, or at the end of the text. Brackets and quoted keys within them
// may hold any byte. It is for languages with paths in their expressions.
func End(text, stops string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case depth > 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth <= 0 && strings.IndexByte(stops, c) >= 0:
			return i
		}
	}
	return len(text)
}
