// Package termtest is a terminal for tests: a buffer that shows what was written
// to it as it would stand on the screen.
package termtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Screen understands what package term writes, and fails loudly on anything else.
// It keeps what scrolled off its top. Wide characters take one column here.
type Screen struct {
	mu            sync.Mutex
	width, height int
	rows          [][]cell
	row, column   int
	style         string
	plain         bool
	drawings      int
}

type cell struct {
	char  rune
	style string
}

// New makes an empty screen of a size.
func New(width, height int) *Screen {
	return &Screen{width: width, height: height, rows: make([][]cell, 1)}
}

// WithoutColour makes it a screen whose user wants no colours.
func (s *Screen) WithoutColour() *Screen {
	s.plain = true
	return s
}

// Size returns the size that a program sees.
func (s *Screen) Size() (width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width, s.height
}

// Colour says whether a program may use colours.
func (s *Screen) Colour() bool { return !s.plain }

// Resize changes the size. Lines that are too long are broken, as terminals do.
func (s *Screen) Resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows [][]cell
	for i, row := range s.rows {
		if i == s.row {
			s.row = len(rows)
		}
		for len(row) > width {
			rows, row = append(rows, row[:width:width]), row[width:]
		}
		rows = append(rows, row)
	}
	s.rows, s.width, s.height = rows, width, height
}

// Drawings is the number of writes.
func (s *Screen) Drawings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drawings
}

var code = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

// Write shows text.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawings++
	rest := string(text)
	for rest != "" {
		if found := code.FindStringSubmatch(rest); found != nil {
			s.obey(found[1], found[2])
			rest = rest[len(found[0]):]
			continue
		}
		for i, char := range rest {
			if i > 0 {
				rest = rest[i:]
				break
			}
			s.put(char)
			if len(string(char)) == len(rest) {
				rest = ""
			}
		}
	}
	return len(text), nil
}

func (s *Screen) put(char rune) {
	switch {
	case char == '\n':
		s.row, s.column = s.row+1, 0
	case char == '\r':
		s.column = 0
		return
	case char < ' ':
		panic(fmt.Sprintf("a control character %q was written to the terminal", char))
	default:
		if s.column == s.width {
			s.row, s.column = s.row+1, 0
		}
		s.reach()
		row := s.rows[s.row]
		for len(row) <= s.column {
			row = append(row, cell{char: ' '})
		}
		row[s.column] = cell{char, s.style}
		s.rows[s.row] = row
		s.column++
	}
	s.reach()
}

func (s *Screen) reach() {
	for len(s.rows) <= s.row {
		s.rows = append(s.rows, nil)
	}
}

func (s *Screen) obey(argument, letter string) {
	switch letter {
	case "A":
		n, _ := strconv.Atoi(argument)
		// What has scrolled off cannot be reached.
		s.row = max(s.row-n, len(s.rows)-s.height, 0)
	case "K":
		s.rows[s.row] = s.rows[s.row][:min(s.column, len(s.rows[s.row]))]
	case "J":
		s.rows[s.row] = s.rows[s.row][:min(s.column, len(s.rows[s.row]))]
		s.rows = s.rows[:s.row+1]
	case "m":
		if s.style = argument; argument == "0" {
			s.style = ""
		}
	default:
		panic(fmt.Sprintf("an escape code %q was written to the terminal", argument+letter))
	}
}

// String returns the text on the screen and above it.
func (s *Screen) String() string { return s.text(false) }

// Styled is like String, with styles shown: {7:text}.
func (s *Screen) Styled() string { return s.text(true) }

func (s *Screen) text(styled bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, row := range s.rows {
		var line strings.Builder
		style := ""
		for _, c := range row {
			if styled && c.style != style {
				if style != "" {
					line.WriteString("}")
				}
				if style = c.style; style != "" {
					line.WriteString("{" + style + ":")
				}
			}
			line.WriteRune(c.char)
		}
		if style != "" {
			line.WriteString("}")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
