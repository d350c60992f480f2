package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// copying holds the flags of the commands that keep a live copy, mirror and serve: what is
// copied, how it is compared with the server, and where else it is kept.
type copying struct {
	scope
	verifying
	keeping
	fleetFlags
}

func (c *copying) bind(cmd *cobra.Command) {
	c.scope.bind(cmd)
	c.verifying.bind(cmd)
	c.keeping.bind(cmd)
	c.fleetFlags.bind(cmd)
}

func (c *copying) check() error {
	return errors.Join(c.scope.check(), c.verifying.check(), c.keeping.check())
}
