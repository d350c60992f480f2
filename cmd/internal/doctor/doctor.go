// Package doctor checks, one after the other, the requirements of a copy of a cluster: the
// connection to the server, the rights, a server that is new enough, and a directory that can
// be written.
//
// A check says what it found and what to do about it. It takes no longer than its deadline,
// and it is skipped if its precondition failed. It changes nothing, and no request costs the
// server more than a list of fifty objects.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Status is the outcome of a check.
type Status string

// A warning is something that works, but not as well as it could. A check is skipped
// if it cannot be made; Found says why.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Result is the result of a check.
type Result struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Found  string `json:"found"`
	// Advice is what to do, empty if there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

func ok(format string, args ...any) Result {
	return Result{Status: OK, Found: fmt.Sprintf(format, args...)}
}

func warn(advice, format string, args ...any) Result {
	return Result{Status: Warn, Found: fmt.Sprintf(format, args...), Advice: advice}
}

func fail(advice, format string, args ...any) Result {
	return Result{Status: Fail, Found: fmt.Sprintf(format, args...), Advice: advice}
}

func skip(format string, args ...any) Result {
	return Result{Status: Skip, Found: fmt.Sprintf(format, args...)}
}

// Doctor makes checks and reports each result as soon as it is available.
//
// Preconditions are names of earlier checks. A check that warned counts as passed. So does a
// check that was skipped because it did not apply, as TLS does not to plain HTTP. A check
// that was skipped for its own precondition counts as failed.
type Doctor struct {
	timeout time.Duration
	report  func(Result)
	blocked map[string]string // name of a check to the name of the failed one
	failed  bool
}

// New returns a Doctor whose checks take no longer than timeout each.
func New(timeout time.Duration, report func(Result)) *Doctor {
	return &Doctor{timeout: timeout, report: report, blocked: map[string]string{}}
}

// Failed reports whether a check failed.
func (d *Doctor) Failed() bool { return d.failed }

// Check makes a check, unless one of its preconditions has failed. Once ctx has ended it
// reports nothing: the result of an interrupted check means nothing.
func (d *Doctor) Check(ctx context.Context, name string, needs []string, check func(context.Context) Result) Result {
	for _, need := range needs {
		if cause := d.blocked[need]; cause != "" {
			d.blocked[name] = cause
			return d.add(ctx, name, skip("%s failed", cause))
		}
	}
	if ctx.Err() != nil {
		return d.add(ctx, name, skip("interrupted"))
	}
	timed, cancel := context.WithTimeoutCause(ctx, d.timeout, lateError{d.timeout})
	defer cancel()
	return d.add(ctx, name, check(timed))
}

func (d *Doctor) add(ctx context.Context, name string, r Result) Result {
	if ctx.Err() != nil {
		return Result{Check: name, Status: Skip, Found: "interrupted"}
	}
	r.Check = name
	if r.Status == Fail {
		d.failed, d.blocked[name] = true, name
	}
	d.report(r)
	return r
}

// lateError is the cause of a context whose check took too long.
type lateError struct{ timeout time.Duration }

func (e lateError) Error() string { return fmt.Sprintf("no answer within %s", e.timeout) }

// cause returns the reason why a context ended, if it did, instead of the error of an
// interrupted request.
func cause(ctx context.Context, err error) error {
	if late := new(lateError); ctx.Err() != nil && errors.As(context.Cause(ctx), late) {
		return *late
	}
	return err
}
