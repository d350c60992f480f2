package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Markdown writes a table whose first column are words, and the others figures.
func Markdown(out io.Writer, head []string, rows [][]string) { writeAligned(out, head, rows, 1, 0) }

// writeAligned writes cells as Markdown, to be read here and pasted elsewhere.
// The first words columns stand left, the others are figures and stand right. A
// cell that is the same as the one above it, under the same cells to its left, is
// left empty within the first repeats columns.
func writeAligned(out io.Writer, head []string, lines [][]string, words, repeats int) {
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
		if i >= words {
			rule[i] = "---:"
		}
	}
	widths := make([]int, len(head))
	for _, line := range append([][]string{head, rule}, lines...) {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	write := func(line []string) {
		for i, cell := range line {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < words {
				fmt.Fprintf(out, "| %s%s ", cell, padding)
			} else {
				fmt.Fprintf(out, "| %s%s ", padding, cell)
			}
		}
		fmt.Fprintln(out, "|")
	}
	write(head)
	write(rule)
	var above []string
	for _, line := range lines {
		shown := append([]string(nil), line...)
		for i := 0; i < repeats && above != nil && line[i] == above[i]; i++ {
			shown[i] = ""
		}
		write(shown)
		above = line
	}
}
