package verify

import (
	"fmt"
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

// log is what is told of a round to those who gave no function.
func (r *Rolling[T]) log(round Round) {
	switch {
	case round.Result.Verdict == Different && !round.Repaired():
		r.opts.Logger.Error("the copy is not as the server has it, and could not be repaired", "replica", r.target.Name, "round", round.String(), "differences", round.Result.Differences)
	case round.Result.Verdict == Different || round.Passed > 0:
		r.opts.Logger.Warn("the copy was not as the server has it, and has been repaired", "replica", r.target.Name, "round", round.String(), "differences", round.Result.Differences)
	case round.Err != nil:
		r.opts.Logger.Warn("the copy could not be compared with the server; the next round will try again", "replica", r.target.Name, "err", round.Err)
	case round.Result.Verdict == Unknown:
		r.opts.Logger.Warn("the copy could not be compared in full", "replica", r.target.Name, "round", round.String())
	default:
		r.opts.Logger.Debug("the copy is as the server has it", "replica", r.target.Name, "round", round.String())
	}
}
