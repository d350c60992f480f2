package tarn

import (
	"cmp"
	"strings"
)

// Version is a point in a source's history.
//
// It is opaque, except that decimal versions are ordered. An empty or non-numeric
// version is never a duplicate and never a rewind.
//
// A source must not use [Any] as a version: its numbers begin at 1.
type Version string

const (
	// Latest asks for the newest state, read consistently.
	Latest Version = ""
	// Any accepts every state: the cheapest read.
	Any Version = "0"
)

// Compare reports whether v is older than (-1), the same as (0) or newer than (+1)
// w. Its second result is false if one of them is not a number.
//
// It compares digits as text, so that a version may exceed any integer type.
func (v Version) Compare(w Version) (int, bool) {
	a, ok := v.digits()
	if !ok {
		return 0, false
	}
	b, ok := w.digits()
	if !ok {
		return 0, false
	}
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c, true
	}
	return strings.Compare(a, b), true
}

// OlderThan reports whether both are numbers and v is the smaller one.
func (v Version) OlderThan(w Version) bool {
	c, ok := v.Compare(w)
	return ok && c < 0
}

// digits returns the number without leading zeros.
func (v Version) digits() (string, bool) {
	if v == "" {
		return "", false
	}
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return "", false
		}
	}
	return strings.TrimLeft(string(v), "0"), true
}
