package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the script that completes command lines in your shell",
		Long: `Print the script by which bash, zsh, fish or powershell complete command lines:
commands and flags, and from the cluster resources, names and namespaces.

As a plugin, "kubectl tarn" is completed by kubectl, which looks for a program
called kubectl_complete-tarn. A link of that name to kubectl-tarn is all that it
takes.`,
		Example: `  # This shell
  source <(tarn completion bash)

  # All later ones
  tarn completion bash > /etc/bash_completion.d/tarn
  tarn completion zsh > "${fpath[1]}/_tarn"
  tarn completion fish > ~/.config/fish/completions/tarn.fish
  tarn completion powershell >> $PROFILE

  # The plugin
  ln -s "$(command -v kubectl-tarn)" /usr/local/bin/kubectl_complete-tarn`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("say for which shell: %q and the like; there are %s", a.program+" completion bash", strings.Join(shells, ", "))
			}
			return nil
		},
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usagef("there is no completion for %q%s; there is for %s", args[0], didYouMean(near(args[0], shells)), strings.Join(shells, ", "))
		},
	}
}
