package report

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
)

// drawLines draws every line with its name at its end. Names that would cover
// each other are moved down.
func (c chart) drawLines(b *bytes.Buffer, px, py func(float64) float64) {
	type label struct {
		y            float64
		name, colour string
	}
	var labels []label
	ourOwn, others := 0, 0
	for _, l := range c.lines {
		colours, next := othersColours, &others
		if strings.HasPrefix(l.name, ours) {
			colours, next = ourColours, &ourOwn
		}
		colour := colours[*next%len(colours)]
		*next++
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
		for _, p := range l.points {
			fmt.Fprintf(b, "%.1f,%.1f ", px(p.x), py(p.y))
		}
		b.WriteString("\"/>\n")
		for _, p := range l.points {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %s objects: %s</title></circle>`+"\n",
				px(p.x), py(p.y), colour, html.EscapeString(l.name), Thousands(p.x), html.EscapeString(c.unit.Format(p.y)))
		}
		labels = append(labels, label{py(l.points[len(l.points)-1].y), l.name, colour})
	}
	slices.SortStableFunc(labels, func(a, b label) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	for i := range labels {
		if i > 0 {
			labels[i].y = max(labels[i].y, labels[i-1].y+labelHeight)
		}
		fmt.Fprintf(b, `<text x="%d" y="%.1f" fill="%s">%s</text>`+"\n", left+plotWidth+10, labels[i].y+4, labels[i].colour, html.EscapeString(labels[i].name))
	}
}
