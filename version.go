package tarn

import (
	"cmp"
	"strings"
)

// Version is a point in a source's history.
//
// It is opaque, except that two decimal versions can be told older from newer.
// An empty or non-numeric version is never a duplicate and never a rewind.
//
// A source's own versions are never [Any]: number from 1.
type Version string

const (
	// Latest asks for the newest state, read consistently.
	Latest Version = ""
	// Any accepts whatever state is at hand: the cheapest read.
	Any Version = "0"
)

// Compare tells whether v is older (-1), the same (0) or newer (+1) than w. Its
// second result is false when that cannot be known.
//
// The numbers are compared as text, so that a version may have more digits than
// any integer type.
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

// OlderThan says whether v is known to be older than w.
func (v Version) OlderThan(w Version) bool {
	c, ok := v.Compare(w)
	return ok && c < 0
}

// digits gives the number without leading zeros.
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
