package cli

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/mirror"
	"github.com/tarnproject/tarn/verify"
)

// verifying is the flag by which a command that mirrors also compares its copies
// with the server, all the time and slowly.
type verifying struct{ period time.Duration }

// minVerifyPeriod keeps a wrong unit from becoming a load on the server.
const minVerifyPeriod = 10 * time.Second

func (v *verifying) bind(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&v.period, "verify", 0, "compare the copy with the server once in this time, such as 10m, and repair what differs; 0: never")
}

func (v *verifying) check() error {
	if v.period < 0 || v.period > 0 && v.period < minVerifyPeriod {
		return usagef("--verify is a time of %s or more, such as 10m, or 0 for never; not %s", minVerifyPeriod, v.period)
	}
	return nil
}

// start compares the tables until ctx ends. What is found is logged.
func (v *verifying) start(ctx context.Context, a *app, m *mirror.Mirror, running *sync.WaitGroup) error {
	if v.period == 0 {
		return nil
	}
	var all []*verify.Rolling[mirror.Object]
	for _, table := range m.Tables() {
		rolling, err := verify.NewRolling(table.Target(), verify.RollingOptions{Period: v.period, Logger: a.logger})
		if err != nil {
			return err
		}
		all = append(all, rolling)
	}
	for _, rolling := range all {
		running.Go(func() { _ = rolling.Run(ctx) }) // returns why ctx ended
	}
	return nil
}
