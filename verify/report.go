package verify

import (
	"fmt"
	"log/slog"
	"strings"
)

// String is the round in one line.
func (r Round) String() string {
	switch {
	case r.Err != nil && r.Result.Verdict != Different:
		return r.Err.Error()
	case r.Passed > 0:
		return fmt.Sprintf("%s; %d objects were different at the first look and have been overwritten since", r.Result, r.Passed)
	case r.Result.Verdict != Different:
		return r.Result.String()
	}
	var s strings.Builder
	s.WriteString(r.Result.String())
	switch {
	case r.Err != nil:
		fmt.Fprintf(&s, "; whether it could be repaired is not known: %v", r.Err)
	case r.Repaired():
		s.WriteString("; read anew, and equal since")
	case r.After != nil:
		fmt.Fprintf(&s, "; read anew, and still not equal: %d missing, %d extra, %d changed", r.After.Missing, r.After.Extra, r.After.Changed)
	}
	return s.String()
}

// Log logs the round, one without a fault at debug level only.
func (r Round) Log(to *slog.Logger) {
	name := r.Result.Name
	switch {
	case r.Result.Verdict == Different && !r.Repaired():
		to.Error("the copy is not as the server has it, and could not be repaired", "replica", name, "round", r.String(), "differences", r.Result.Differences)
	case r.Result.Verdict == Different || r.Passed > 0:
		to.Warn("the copy was not as the server has it, and has been repaired", "replica", name, "round", r.String(), "differences", r.Result.Differences)
	case r.Err != nil:
		to.Warn("the copy could not be compared with the server; the next round will try again", "replica", name, "err", r.Err)
	case r.Result.Verdict == Unknown:
		to.Warn("the copy could not be compared in full", "replica", name, "round", r.String())
	default:
		to.Debug("the copy is as the server has it", "replica", name, "round", r.String())
	}
}
