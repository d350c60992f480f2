package cli

import (
	"time"

	"github.com/spf13/cobra"
)

// verifying is the flag by which a command that mirrors also compares its copies with the
// server, slowly and continuously.
type verifying struct{ period time.Duration }

// minVerifyPeriod prevents a wrong unit from putting load on the server.
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
