// Command tarn shows a replica at work: a collection in memory that keeps
// changing and now and then drops the connection, a replica that follows it, and
// what the replica sees, until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tarn:", err)
		os.Exit(1)
	}
}

// run shows the demonstration until ctx ends.
func run(ctx context.Context, out io.Writer) error {
	fleet := newFleet()
	lines := make(chan string)
	say := func(format string, args ...any) {
		select {
		case lines <- fmt.Sprintf(format, args...):
		case <-ctx.Done():
		}
	}

	replica, err := tarn.NewReplica(fleet, memory.New[ship](), tarn.Options[ship]{
		Name:    "fleet",
		OnError: func(_ context.Context, err error) { say("!  %v", err) },
	})
	if err != nil {
		return err
	}
	if _, err := replica.Subscribe(func(c tarn.Change[ship]) { say("%s", describe(c)) }, tarn.SubscribeOptions{Name: "printer"}); err != nil {
		return err
	}

	ended := make(chan error, 2)
	go func() { ended <- fleet.live(ctx) }()
	go func() { ended <- replica.Run(ctx) }()
	fmt.Fprintln(out, "A fleet in memory, and a replica that follows it. Ctrl-C ends.")

	health := time.NewTicker(5 * time.Second)
	defer health.Stop()
	for running := 2; running > 0; {
		select {
		case line := <-lines:
			fmt.Fprintln(out, line)
		case <-health.C:
			h := replica.Health()
			fmt.Fprintf(out, "=  %s; %d ships, %d events, %d watches, lists: %v\n", h, replica.Len(), h.Events, h.Watches, h.Lists)
		case err := <-ended:
			running--
			if err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
		}
	}
	fmt.Fprintf(out, "Stopped with %d ships, as of version %s.\n", replica.Len(), replica.Version())
	return nil
}

func describe(c tarn.Change[ship]) string {
	switch c.Type {
	case tarn.Add:
		if c.Initial {
			return fmt.Sprintf("+  %-10s %-9s (was there)", c.Object.name, c.Object.state)
		}
		return fmt.Sprintf("+  %-10s %s", c.Object.name, c.Object.state)
	case tarn.Update:
		return fmt.Sprintf("~  %-10s %s -> %s", c.Object.name, c.Old.state, c.Object.state)
	default:
		return fmt.Sprintf("-  %-10s %s", c.Object.name, c.Object.state)
	}
}
