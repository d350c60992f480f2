package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn/cache"
)

// failures are the errors that a copy's error handler received.
type failures struct {
	mu    sync.Mutex
	notes []failure
}

type failure struct {
	at  time.Time
	err error
}

func (f *failures) note(_ context.Context, _ *cache.Reflector, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, failure{time.Now(), err})
}

// includes says whether there was a failure of a kind.
func (f *failures) includes(target error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.notes {
		if errors.Is(n.err, target) {
			return true
		}
	}
	return false
}

// String has a line for each.
func (f *failures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, n := range f.notes {
		fmt.Fprintf(&b, "  %s %v\n", n.at.Format("15:04:05.000"), n.err)
	}
	return b.String()
}
