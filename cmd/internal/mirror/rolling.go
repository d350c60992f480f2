package mirror

import (
	"context"
	"time"

	"github.com/tarnproject/tarn/verify"
)

// rolling compares the table with the server continuously, if the options say so. Its
// findings are problems like any others: those that it could not repair last until a later
// round has found the copy equal.
func (m *Mirror) rolling(t *Table, opts Options) error {
	if opts.Verify <= 0 {
		return nil
	}
	var err error
	t.rolling, err = verify.NewRolling(t.Target(), verify.RollingOptions{
		Period: opts.Verify,
		OnRound: func(round verify.Round) {
			round.Log(opts.Logger)
			if d, found := diagnoseRound(round); found {
				m.problems.met(time.Now(), t.resource, d)
			}
		},
	})
	return err
}

// verify runs the comparison until ctx ends.
func (t *Table) verify(ctx context.Context) {
	if t.rolling != nil {
		_ = t.rolling.Run(ctx) // returns why ctx ended
	}
}

// Verified has the results of comparing the table with the server so far. It is empty without
// [Options.Verify].
func (t *Table) Verified() verify.Status {
	if t.rolling == nil {
		return verify.Status{}
	}
	return t.rolling.Status()
}

// diagnoses returns the current errors of the table.
func (t *Table) diagnoses() []diagnosis {
	found := diagnosesOf(t.replica.Health(), t.inputs.named())
	if last := t.Verified().Last; last != nil && !last.Repaired() && last.Passed == 0 {
		if d, wrong := diagnoseRound(*last); wrong {
			found = append(found, d)
		}
	}
	return found
}

// diagnoseRound says what a round of the comparison means, if it found differences.
func diagnoseRound(round verify.Round) (d diagnosis, found bool) {
	d.detail = round.String()
	if len(round.Result.Differences) > 0 {
		d.detail += ", the first of them " + round.Result.Differences[0].String()
	}
	switch {
	case round.Repaired() || round.Passed > 0:
		d.what = "the copy was not as the server has it"
		d.advice = always("it is right again; who read the copy before may have acted on what was not so. If it happens again it is a bug of Tarn, or of something in between that changes answers: please report it")
	case round.Result.Verdict == verify.Different:
		d.what = "the copy is not as the server has it"
		d.advice = always("it was read anew and still differs: the server may give different answers, such as several behind one address that do not share their state; tarn verify tells which objects differ")
	case round.Err != nil || round.Result.Verdict == verify.Unknown:
		d.what = "the copy could not be compared with the server"
		d.advice = always("the next round tries again; until then what is shown is as right as the watch is")
	default:
		return diagnosis{}, false
	}
	return d, true
}
