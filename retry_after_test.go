package tarn

import (
	"errors"
	"testing"
	"time"
)

// A source that asks to be left alone for decades is asked again all the same.
func TestRetryAfterIsBounded(t *testing.T) {
	mad := Because(ReasonBusy, 1<<31*time.Second, errors.New("come back later"))
	if got := RetryAfter(mad); got != maxRetryAfter {
		t.Errorf("left alone for %v", got)
	}
	if got := RetryAfter(Because(ReasonBusy, 7*time.Second, errors.New("busy"))); got != 7*time.Second {
		t.Errorf("left alone for %v, not the 7 s it asked for", got)
	}
}
