package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/measure"
)

const (
	// exitPassing is the exit code of a measuring process after a temporary failure of the
	// server. It is the code of sysexits for that.
	exitPassing = 75
	// benchTries is how often a measurement is tried, benchPause the first pause between two
	// tries. Each further pause is twice as long.
	benchTries = 5
	benchPause = time.Second
)

// passing is a failure that may not occur at the next try.
type passing struct{ error }

func (p passing) Unwrap() error { return p.error }

// persist repeats a measurement until it has no failure. A figure with a failure in it would
// measure the failure, so the whole measurement is repeated. Earlier measurements are kept.
func (a *app) persist(ctx context.Context, run func() (measure.Result, error)) (measure.Result, error) {
	pause := benchPause
	for try := 1; ; try++ {
		result, err := run()
		var passes passing
		switch {
		case err == nil || !errors.As(err, &passes):
			return result, err
		case try == benchTries:
			return result, fmt.Errorf("%w; it failed %d times in a row, try again when the server is well", err, benchTries)
		}
		fmt.Fprintf(a.errOut, "that failed: %s; trying again in %s\n", oneLine(err), pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return result, ctx.Err()
		}
		pause *= 2
	}
}
