package term

import (
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Style is how a piece of text looks. The colours are the terminal's own sixteen
// as its user has set them, never backgrounds and never exact shades: what is
// readable on a dark screen is so on a light one.
type Style string

// The styles. Reversed stands out whatever the colours are.
const (
	Plain    Style = ""
	Bold     Style = "1"
	Dim      Style = "2"
	Reversed Style = "7"
	Red      Style = "31"
	Green    Style = "32"
	Yellow   Style = "33"
)

// A Span is a piece of text in one style.
type Span struct {
	Text  string
	Style Style
}

// A Line is one row of the screen. It holds spans and not escape codes so that it
// can be cut to any width without cutting a code.
type Line []Span

// Text makes a line of plain text.
func Text(text string) Line { return Line{{Text: text}} }

// Width is the number of columns of a line.
func (l Line) Width() int {
	total := 0
	for _, s := range l {
		total += Width(Clean(s.Text))
	}
	return total
}

// Render returns the whole line, with or without colours.
func (l Line) Render(colour bool) string { return l.render(math.MaxInt, colour) }

// render returns the line cut to a width, with or without colours.
func (l Line) render(columns int, colour bool) string {
	var b strings.Builder
	for _, s := range l {
		text := Clean(s.Text)
		if Width(text) > columns {
			text = Cut(text, columns)
		}
		columns -= Width(text)
		if !colour || s.Style == Plain || text == "" {
			b.WriteString(text)
			continue
		}
		b.WriteString("\x1b[" + string(s.Style) + "m" + text + "\x1b[0m")
	}
	return b.String()
}

// Width is the number of columns of a text.
func Width(text string) int {
	total := 0
	for _, r := range text {
		total += runeWidth(r)
	}
	return total
}

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r == 0x7f || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x300:
		return 1
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut shortens a text to some columns, and shows that by an ellipsis.
func Cut(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	if Width(text) <= columns {
		return text
	}
	taken := 0
	for i, r := range text {
		if taken += runeWidth(r); taken > columns-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// Pad fills a text up to some columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Width(text)))
}

// Clean removes what would move the cursor or change the terminal: the user at the
// terminal need not trust the authors of objects.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case unprintable(r):
			return '�'
		}
		return r
	}, text)
}

// unprintable also matches marks that change the direction of writing, by which one
// text can look like another.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Bar draws how much of something is done, in that many columns.
func Bar(columns int, part float64) string {
	const eighths = " ▏▎▍▌▋▊▉"
	marks := []rune(eighths)
	filled := int(min(max(part, 0), 1) * float64(columns) * 8)
	bar := strings.Repeat("█", filled/8)
	if filled%8 > 0 {
		bar += string(marks[filled%8])
	}
	return Pad(bar, columns)
}
