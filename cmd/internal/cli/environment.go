package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "TARN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets the flags of a command that the command line did not set.
func (a *app) applyEnvironment(cmd *cobra.Command) error {
	var wrong error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, ok := a.getenv(variable(f.Name))
		if !ok || f.Changed || f.Name == "help" || wrong != nil {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			wrong = usagef("the environment variable %s is wrong: --%s cannot be %q", variable(f.Name), f.Name, value)
		}
	})
	return wrong
}
