package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
)

// speed is how fast pods were written: the best of several rounds, in pods per second, and
// the least CPU for one, that of everything in this process.
type speed struct {
	name string
	best float64
	cpu  time.Duration
}

// measure runs one round of n pods.
func (s *speed) measure(n int, do func() error) error {
	runtime.GC() // what the round before left is not this one's
	begun, used := time.Now(), cpu()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.best = max(s.best, float64(n)/time.Since(begun).Seconds())
	if each := (cpu() - used) / time.Duration(n); s.cpu == 0 || each < s.cpu {
		s.cpu = each
	}
	return nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// comparison is sinks beside a bare writer, with the part of its speed that they must reach.
type comparison struct {
	bare  speed
	sinks []speed
	bound float64
}

// print writes the rows of a table, and fails if a sink is too slow.
func (c comparison) print(out io.Writer) (err error) {
	fmt.Fprintf(out, "| %s | %.0f | | %.0f |\n", c.bare.name, c.bare.best, micros(c.bare.cpu))
	for _, s := range c.sinks {
		part := s.best / c.bare.best
		fmt.Fprintf(out, "| %s | %.0f | %.2f | %.0f |\n", s.name, s.best, part, micros(s.cpu))
		if part < c.bound {
			err = errors.Join(err, tooSlow{fmt.Errorf("%s has %.2f of the bare writer, less than %.2f", s.name, part, c.bound)})
		}
	}
	return err
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// step is one write of all pods.
type step struct {
	kind    tarn.ChangeType
	version string
}

// steps are a first state, and an update of each object.
var steps = []step{{tarn.Add, "1"}, {tarn.Update, "2"}}

func commitAll(ctx context.Context, sink tarn.Sink[*corev1.Pod], batches []tarn.Batch[*corev1.Pod]) error {
	for _, b := range batches {
		if err := sink.Commit(ctx, b); err != nil {
			return err
		}
	}
	return nil
}
