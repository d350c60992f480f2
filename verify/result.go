package verify

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
)

// Verdict is what a comparison found.
type Verdict string

const (
	// Equal: everything that was compared is the same on both sides.
	Equal Verdict = "equal"
	// Different: at least one object is not, or the server went back.
	Different Verdict = "different"
	// Unknown: nothing was found to differ, but not everything could be compared.
	// Result.Note says why.
	Unknown Verdict = "unknown"
)

// Result is how a comparison went.
type Result struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Version is the state that was compared.
	Version tarn.Version `json:"version"`
	// Exact says that both sides were at that version. Otherwise the server's
	// latest state was compared, at least of this version, without the objects that
	// had changed meanwhile.
	Exact bool `json:"exact"`
	// Objects is how many the copy has, Listed how many the server.
	Objects int `json:"objects"`
	Listed  int `json:"listed"`
	// Digest is that of the copy, ServerDigest that of the server; of what was
	// compared, if not all was.
	Digest       Digest `json:"digest"`
	ServerDigest Digest `json:"serverDigest"`

	// Missing, Extra and Changed count the differences by kind; Differences has
	// the first of them.
	Missing     int          `json:"missing"`
	Extra       int          `json:"extra"`
	Changed     int          `json:"changed"`
	Differences []Difference `json:"differences,omitempty"`

	// Skipped counts objects that changed meanwhile and were therefore not
	// compared, Undecided those that differ, perhaps only because the copy is
	// behind, Unreadable those that could not be read.
	Skipped    int `json:"skipped,omitempty"`
	Undecided  int `json:"undecided,omitempty"`
	Unreadable int `json:"unreadable,omitempty"`
	// Behind says that the server is at an older version than the copy.
	Behind bool `json:"behind,omitempty"`
	// Note says what else there is to know.
	Note string `json:"note,omitempty"`

	// Requests is the number of requests to the server, Took the duration.
	Requests int           `json:"requests"`
	Took     time.Duration `json:"tookNs"`
}

// Kind is how an object differs.
type Kind string

const (
	// Missing: the server has it and the copy does not.
	Missing Kind = "missing"
	// Extra: the copy has it and the server does not.
	Extra Kind = "extra"
	// Changed: both have it, in different states.
	Changed Kind = "changed"
)

// Difference is one object that is not the same on both sides.
type Difference struct {
	Key  tarn.Key `json:"key"`
	Kind Kind     `json:"kind"`
	// Held and Served are the versions of the copy's and of the server's state.
	Held   tarn.Version `json:"held,omitempty"`
	Served tarn.Version `json:"served,omitempty"`
	// Fields are paths at which a changed object differs, ten at most. There are
	// no values, since they may be secret.
	Fields []string `json:"fields,omitempty"`
}

// Count is how many objects differ.
func (r Result) Count() int { return r.Missing + r.Extra + r.Changed }

// String is the result in one line, without the single differences.
func (r Result) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s at version %s, %d objects", r.Name, r.Verdict, cmp.Or(r.Version, "(none)"), r.Objects)
	if none := (Digest{}); r.Digest != none || r.ServerDigest != none {
		fmt.Fprintf(&s, ", digest %s", r.Digest)
	}
	if r.Digest != r.ServerDigest {
		fmt.Fprintf(&s, ", the server's %s", r.ServerDigest)
	}
	for _, part := range []struct {
		n    int
		what string
	}{
		{r.Missing, "missing"}, {r.Extra, "extra"}, {r.Changed, "changed"},
		{r.Skipped, "not compared because they changed meanwhile"},
		{r.Undecided, "undecided"}, {r.Unreadable, "unreadable"},
	} {
		if part.n > 0 {
			fmt.Fprintf(&s, ", %d %s", part.n, part.what)
		}
	}
	if r.Note != "" {
		fmt.Fprintf(&s, "; %s", r.Note)
	}
	return s.String()
}

// String is the difference in one line.
func (d Difference) String() string {
	switch d.Kind {
	case Missing:
		return fmt.Sprintf("%s is missing; the server has it at version %s", d.Key, d.Served)
	case Extra:
		return fmt.Sprintf("%s is there at version %s; the server does not have it", d.Key, d.Held)
	}
	s := fmt.Sprintf("%s differs at version %s", d.Key, d.Held)
	if d.Held != d.Served {
		s += fmt.Sprintf(", the server has it at %s", d.Served)
	}
	if len(d.Fields) > 0 {
		s += ": " + strings.Join(d.Fields, ", ")
	}
	return s
}
