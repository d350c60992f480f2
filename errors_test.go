package tarn

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestBecause(t *testing.T) {
	if err := Because(ReasonBusy, time.Second, nil); err != nil {
		t.Errorf("no error has become %v", err)
	}
	plain := &customError{"too many requests"}
	err := fmt.Errorf("pods: %w", Because(ReasonBusy, 3*time.Second, plain))
	if got := ReasonOf(err); got != ReasonBusy {
		t.Errorf("the reason is %v", got)
	}
	if got := RetryAfter(err); got != 3*time.Second {
		t.Errorf("retry after %v", got)
	}
	if got := err.Error(); got != "pods: too many requests" {
		t.Errorf("the text is %q", got)
	}
	if found, ok := errors.AsType[*customError](err); !ok || found != plain {
		t.Error("the protocol's own error cannot be found")
	}
	for _, other := range []error{nil, io.EOF} {
		if ReasonOf(other) != ReasonUnknown || RetryAfter(other) != 0 {
			t.Errorf("%v has reason %v, retry after %v", other, ReasonOf(other), RetryAfter(other))
		}
	}
	if got := ReasonOf(Because(ReasonExpired, 0, err)); got != ReasonExpired {
		t.Errorf("the last word on the reason was expired, it is %v", got)
	}
}

type customError struct{ text string }

func (e *customError) Error() string { return e.text }

func TestReasonString(t *testing.T) {
	seen := map[string]bool{}
	for r := ReasonUnknown; r <= ReasonNoWatchList; r++ {
		seen[r.String()] = true
	}
	if len(seen) != len(reasonNames) {
		t.Errorf("%d reasons have %d names", len(reasonNames), len(seen))
	}
	if got := Reason(200).String(); got != "reason 200" {
		t.Errorf("a reason that is none is called %q", got)
	}
}

func TestObjectErrors(t *testing.T) {
	err := ObjectErrors{{Key: "a", Err: io.EOF}, {Key: "b/c", Err: errors.New("no name")}}
	if got, want := err.Error(), "a: EOF; b/c: no name"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestTaken(t *testing.T) {
	some := ObjectErrors{{Key: "a", Err: io.EOF}}
	for _, test := range []struct {
		err  error
		want bool
	}{{nil, true}, {some, true}, {fmt.Errorf("write: %w", some), true}, {io.EOF, false}, {errors.Join(io.EOF, some), true}} {
		if got := Taken(test.err); got != test.want {
			t.Errorf("Taken(%v) is %v, want %v", test.err, got, test.want)
		}
	}
}
