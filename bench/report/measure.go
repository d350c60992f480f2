// Package report turns what contenders measured into tables, a file of results
// and plots.
package report

import (
	"fmt"
	"slices"
	"strings"
)

// Measure is one figure with its unit.
type Measure struct {
	Name  string
	Value float64
	Unit  Unit
}

// Result is what a contender measured, in the order in which it is shown.
type Result []Measure

// Unit says how a figure is written.
type Unit string

const (
	Seconds   Unit = "s" // short times are written in smaller units
	Bytes     Unit = "bytes"
	Small     Unit = "bytes of one object"
	Single    Unit = "single bytes"
	PerSecond Unit = "per second"
	Number    Unit = "number"
	Fraction  Unit = "number with decimals"
	Times     Unit = "ratio of two figures"
)

// Format writes a figure.
func (u Unit) Format(v float64) string {
	switch u {
	case Seconds:
		return duration(v)
	case Bytes:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case Small:
		return fmt.Sprintf("%.2f KB", v/1000)
	case Single:
		return fmt.Sprintf("%.1f B", v)
	case PerSecond:
		return Thousands(v) + "/s"
	case Times:
		return fmt.Sprintf("%.2f ×", v)
	case Fraction:
		if v >= 1000 {
			return Thousands(v)
		}
		return fmt.Sprintf("%.1f", v)
	default:
		return Thousands(v)
	}
}

// one is the value that is written as 1.
func (u Unit) one() float64 {
	if u == Bytes {
		return 1 << 20
	}
	return 1
}

func duration(s float64) string {
	switch {
	case s >= 0.5 || s <= 0:
		return fmt.Sprintf("%.2f s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.1f ms", s*1e3)
	case s >= 1e-6:
		return fmt.Sprintf("%.1f µs", s*1e6)
	default:
		return fmt.Sprintf("%.0f ns", s*1e9)
	}
}

// Thousands writes a whole number with separators: 1,234,567.
func Thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Median is the middle of at least one value.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
