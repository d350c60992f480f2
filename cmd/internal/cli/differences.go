package cli

import (
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/internal/render"
)

const (
	// mostDifferences is how many fields of one change are shown, longestValue how
	// much of each value.
	mostDifferences = 200
	longestValue    = 160
)

// differences returns a line for each field in which two states of an object differ, in the
// order of their paths.
func differences(old, new map[string]any) []term.Line {
	edits, more := render.Differences(old, new, mostDifferences, longestValue)
	var lines []term.Line
	for _, e := range edits {
		lines = append(lines, differenceLine(e))
	}
	if more {
		lines = append(lines, term.Line{{Text: "  … and more fields: tarn get -o yaml shows the whole object", Style: term.Dim}})
	}
	return lines
}

// differenceLine is a line of the form path: old → new.
func differenceLine(e render.Edit) term.Line {
	old, new := e.Old, e.New
	if e.Op == "add" {
		old = "(none)"
	}
	if e.Op == "remove" {
		new = "(none)"
	}
	return term.Line{
		{Text: "  " + term.Clean(e.Path) + ": "},
		{Text: term.Clean(old), Style: term.Red}, {Text: " → "}, {Text: term.Clean(new), Style: term.Green},
	}
}
