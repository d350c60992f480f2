package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noSuchCommand gets the arguments of the program if the first one is not a command.
func (a *app) noSuchCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
			names = append(names, c.Aliases...)
		}
	}
	return usagef("there is no command %q%s; %q lists all", args[0], didYouMean(near(args[0], names)), a.program+" --help")
}

// wrongFlag explains what is wrong with a flag.
func (a *app) wrongFlag(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("%q shows all", cmd.CommandPath()+" --help")
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usagef("%s; %s", err, help)
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		return usagef("there is no flag -%s; %s", name, help)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return usagef("there is no flag --%s%s; %s", name, didYouMean(near(name, names)), help)
}

func didYouMean(names string) string {
	if names == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", names)
}

// near returns the names that a mistyped one probably stands for.
func near(typed string, names []string) string {
	words := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, name := range names {
		words.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return strings.Join(words.SuggestionsFor(typed), " or ")
}
