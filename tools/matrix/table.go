package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// column is all that came of a minor.
type column struct {
	minor minor
	cells map[string]cell
	took  time.Duration
}

// table prints what docs/versions.md has.
func table(columns []column) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range columns {
		fmt.Fprintf(&b, " client-go %s, controller-runtime %s |", c.minor.clientGo, c.minor.runtime)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, p := range parts {
		fmt.Fprintf(&b, "| `%s` |", p.name)
		for _, c := range columns {
			b.WriteString(" " + c.cells[p.name].text + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("| took |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.took.Round(time.Second))
	}
	b.WriteString("\n")
	var reasons []string
	for _, c := range columns {
		for name, why := range c.minor.missing {
			if line := fmt.Sprintf("%s: %s", name, why); !slices.Contains(reasons, line) {
				reasons = append(reasons, line)
			}
		}
	}
	slices.Sort(reasons)
	for _, line := range reasons {
		b.WriteString("\n" + line + ".\n")
	}
	return b.String()
}
