package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/bench/report"
)

// speed is how fast pods were written: the best of several rounds, in pods per second, and
// the least CPU for one, that of everything in this process, and that of the server if it is
// another one.
type speed struct {
	name        string
	best        float64
	cpu, server time.Duration
	// serverCPU says what the server has used; nil if it is in this process.
	serverCPU func() (time.Duration, error)
	// unbound says that it is measured, and need not reach the bound.
	unbound bool
}

// measure runs one round of n pods.
func (s *speed) measure(n int, do func() error) error {
	runtime.GC() // what the round before left is not this one's
	before, err := s.ofServer()
	if err != nil {
		return err
	}
	begun, used := time.Now(), report.CPUTime()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.best = max(s.best, float64(n)/time.Since(begun).Seconds())
	s.cpu = least(s.cpu, (report.CPUTime()-used)/time.Duration(n))
	after, err := s.ofServer()
	s.server = least(s.server, (after-before)/time.Duration(n))
	return err
}

// least is the lesser one of two, or the second if there is no first.
func least(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func (s *speed) ofServer() (time.Duration, error) {
	if s.serverCPU == nil {
		return 0, nil
	}
	return s.serverCPU()
}

// comparison is sinks beside a bare writer, with the part of its speed that they must reach.
type comparison struct {
	bare  speed
	sinks []speed
	bound float64
}

// print writes the rows of a table, and fails if a sink is too slow.
func (c comparison) print(out io.Writer) (err error) {
	fmt.Fprintf(out, "| %s | %.0f | | %s |\n", c.bare.name, c.bare.best, c.bare.costs())
	for _, s := range c.sinks {
		part := s.best / c.bare.best
		fmt.Fprintf(out, "| %s | %.0f | %.2f | %s |\n", s.name, s.best, part, s.costs())
		if part < c.bound && !s.unbound {
			err = errors.Join(err, tooSlow{fmt.Errorf("%s has %.2f of the bare writer, less than %.2f", s.name, part, c.bound)})
		}
	}
	return err
}

// costs are the cells of a table: the CPU of this process, and of the server.
func (s *speed) costs() string {
	server := "in the process"
	if s.serverCPU != nil {
		server = fmt.Sprintf("%.0f", micros(s.server))
	}
	return fmt.Sprintf("%.0f | %s", micros(s.cpu), server)
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
