package main

import (
	"cmp"
	"fmt"
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
	for _, p := range testSets {
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
	for _, c := range columns {
		for _, p := range testSets {
			if why := cmp.Or(c.minor.missing[p.name], c.minor.untested[p.name]); why != "" {
				fmt.Fprintf(&b, "\n- `%s` with client-go %s: %s.", p.name, c.minor.clientGo, why)
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n") + "\n"
}
