// Package term draws on terminals: it knows their size, what they can show, and
// how to draw over what was drawn before.
package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// A Terminal is a screen that can be written to.
type Terminal interface {
	io.Writer
	// Size is called before each drawing, because users resize windows. Zero means
	// unknown.
	Size() (width, height int)
	// Colour says whether to use colours.
	Colour() bool
}

// Of returns the terminal behind w, if it is one that can be drawn on.
func Of(w io.Writer) (Terminal, bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	return &fileTerminal{file}, true
}

type fileTerminal struct{ *os.File }

func (t *fileTerminal) Size() (width, height int) {
	width, height, err := term.GetSize(int(t.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// Colour follows the convention of no-color.org.
func (t *fileTerminal) Colour() bool { return os.Getenv("NO_COLOR") == "" }
