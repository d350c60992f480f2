package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// setUpHelp gives all commands the same help.
func (a *app) setUpHelp(root *cobra.Command) {
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpCommand(a.helpCommand())
	root.AddCommand(a.optionsCommand())
	rename(root, a.program)
}

// rename makes examples call the program as the user does.
func rename(cmd *cobra.Command, program string) {
	if program != "tarn" {
		cmd.Example = strings.ReplaceAll(cmd.Example, "  tarn ", "  "+program+" ")
		cmd.Long = strings.ReplaceAll(cmd.Long, `"tarn `, `"`+program+" ")
	}
	for _, sub := range cmd.Commands() {
		rename(sub, program)
	}
}

// helpCommand is another way to write --help: "tarn help get".
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, _, err := cmd.Root().Find(args)
			if err != nil || len(args) > 0 && found == cmd.Root() {
				return a.noSuchCommand(cmd.Root(), args)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

func (a *app) optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands take",
		Long: `List the flags that all commands take: those that choose a cluster are
kubectl's.

Every flag, also those of single commands, can be set by the environment, as
TARN_ and its name in capitals with _ for -: TARN_LOG_LEVEL=debug. The command
line takes precedence.`,
		Example: `  tarn options
  TARN_LOG_LEVEL=debug tarn get pods`,
		Args: a.noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.out, "%s\n\n%s", cmd.Long, cmd.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

const usageTemplate = `Usage:
{{- if .Runnable}}{{if .HasParent}}
  {{.UseLine}}{{end}}{{end}}
{{- if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND [flags]{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}
{{- if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}

{{if .HasAvailableSubCommands}}"{{.CommandPath}} COMMAND --help" tells more of a command.
{{end}}"{{.Root.DisplayName}} options" lists the flags that all commands take.
`
