package term

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// Live is a block of lines at the end of the terminal's output that is drawn
// again and again in place, with ordinary output scrolling by above it.
//
// Each drawing is one write, which overwrites the previous lines and clears what they leave,
// so nothing flickers. The cursor is not hidden and the screen not switched: after a kill the
// terminal is still usable, and shows the last state.
//
// Its methods may be called by several goroutines.
type Live struct {
	terminal Terminal

	mu    sync.Mutex
	drawn []Line
	// width is what drawn was drawn in.
	width int
}

// NewLive makes a block on a terminal; nothing is drawn yet.
func NewLive(t Terminal) *Live { return &Live{terminal: t} }

// Draw shows these lines in the place of the last ones, cut to the size of the terminal: long
// lines lose their end, and excess lines at the bottom are left out.
func (l *Live) Draw(lines []Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draw(nil, lines)
}

// Write puts text above the block. Loggers write to it.
func (l *Live) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.draw(text, l.drawn); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (l *Live) draw(above []byte, lines []Line) error {
	width, height := l.Size()
	var frame bytes.Buffer
	if rows := l.rows(width); rows > 0 {
		fmt.Fprintf(&frame, "\x1b[%dA\r", rows)
	}
	if len(above) > 0 {
		frame.WriteString("\x1b[J")
		frame.WriteString(strings.TrimSuffix(string(above), "\n") + "\n")
	}
	// The cursor stands below the last line, which takes a row too.
	lines = lines[:min(len(lines), height-1)]
	for _, line := range lines {
		frame.WriteString(line.render(width, l.terminal.Colour()))
		frame.WriteString("\x1b[K\n")
	}
	frame.WriteString("\x1b[J")
	l.drawn, l.width = lines, width
	_, err := l.terminal.Write(frame.Bytes())
	return err
}

// rows is the number of rows that the drawn lines take now: if the window was made narrower,
// they wrap.
func (l *Live) rows(width int) int {
	rows := 0
	for _, line := range l.drawn {
		rows += max(1, (min(line.Width(), l.width)+width-1)/width)
	}
	return rows
}

// Size is the terminal's size, or a usual one if it is unknown.
func (l *Live) Size() (width, height int) {
	width, height = l.terminal.Size()
	if width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// TooSmall says what to do if the terminal is smaller than a view needs; nil if it is large
// enough.
func TooSmall(t Terminal, width, height int) error {
	w, h := t.Size()
	if w <= 0 || h <= 0 || w >= width && h >= height {
		return nil
	}
	return fmt.Errorf("the terminal is too small: it has %d columns and %d lines, and %d and %d are needed; enlarge it, or pipe the output to cat for plain lines", w, h, width, height)
}
