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
