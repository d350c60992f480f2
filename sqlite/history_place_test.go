package sqlite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn/changelog"
)

// A log whose first state is not complete has no moment to show, and says that and not a
// time in the year 1.
func TestMomentBeforeTheFirstState(t *testing.T) {
	log := logSubject(t, Options{History: keepAll}).Log
	_, byTime := log.AtTime(t.Context(), time.Now())
	_, byVersion := log.AtVersion(t.Context(), "7")
	for _, err := range []error{byTime, byVersion} {
		if !errors.Is(err, changelog.ErrAhead) || !strings.Contains(err.Error(), "objects: ") || !strings.Contains(err.Error(), "first state is not all on disk yet") {
			t.Errorf("it says %v", err)
		}
	}
}

// The moment that an error names as the first one can be asked for: it is not rounded to a
// second before it.
func TestFirstMomentCanBeAskedFor(t *testing.T) {
	r := newPastRig(t, keepAll)
	r.now = r.now.Truncate(time.Second).Add(463 * time.Millisecond)
	r.set("ns/a", "text")
	_, err := r.sink.Log().AtTime(t.Context(), r.now.Add(-time.Hour))
	if !errors.Is(err, changelog.ErrExpired) {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(err.Error(), "its history begins at ")
	text, _, _ = strings.Cut(text, ",")
	first, parseErr := time.Parse(time.RFC3339, text)
	must(t, parseErr)
	if _, err := r.sink.Log().AtTime(t.Context(), first); err != nil {
		t.Error(err)
	}
}
