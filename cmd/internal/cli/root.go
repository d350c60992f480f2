// Package cli is the program tarn: its commands, one to a file.
//
// A method of app makes each command. app has all that a command may use of the
// world: streams, environment, terminal, and the way to a cluster. So the tests
// run the real commands, with a cluster in the process and a terminal that is a
// buffer.
package cli

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"k8s.io/client-go/rest"
)

// app is what all commands share.
type app struct {
	// program is the name by which the user calls it: "tarn" or "kubectl tarn".
	program string

	in          io.Reader
	out, errOut io.Writer
	getenv      func(name string) (value string, ok bool)
	// terminal returns the terminal behind out, if out is one.
	terminal func() (term.Terminal, bool)

	connection connection
	applied
	logging logging
	// logger writes to errOut, or above the live view while there is one, as --log-level and
	// --log-format say. It is set before a command runs.
	logger *slog.Logger

	// klog, if set, is called with the logger for client-go.
	klog func(*slog.Logger)
	// execute runs the program itself again, in its own process.
	execute func(ctx context.Context, args, environment []string, stdin io.Reader) (stdout []byte, err error)
	// connect, if set, replaces the kubeconfig, for tests.
	connect func() (cfg *rest.Config, namespace string, err error)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tarn",
		Short: "Live copies of a cluster's objects: show, follow and verify them",
		Long: `Tarn keeps a live local copy of the objects of a Kubernetes cluster, and shows
that the copy is right and how fresh it is.

It finds the cluster as kubectl does: by --kubeconfig, $KUBECONFIG or
~/.kube/config, and inside of a pod by its service account. "tarn demo" needs no
cluster.

Every flag can be set by the environment, as TARN_ and its name in capitals:
TARN_LOG_LEVEL=debug. The command line takes precedence.

Exit codes: 0 done, also when Ctrl-C ends a live view; 1 failed; 2 the command
line is wrong; 130 interrupted before it was done.`,
		Example: `  # A lively cluster in memory, and its page, in one command
  tarn demo

  # Your own cluster
  tarn get pods -A
  tarn watch deployments,pods -n shop
  tarn mirror all -A`,
		Args:          a.noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.prepare(cmd)
		},
	}
	if a.program != "tarn" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: a.program}
		root.Use = "kubectl-tarn"
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)
	root.SetFlagErrorFunc(a.wrongFlag)
	a.connection.bind(root.PersistentFlags())
	a.applied.bind(root.PersistentFlags())
	a.logging.bind(root.PersistentFlags())
	root.AddCommand(
		a.getCommand(),
		a.queryCommand(),
		a.sqlCommand(),
		a.watchCommand(),
		a.historyCommand(),
		a.replayCommand(),
		a.mirrorCommand(),
		a.feedCommand(),
		a.verifyCommand(),
		a.serveCommand(),
		a.relayCommand(),
		a.doctorCommand(),
		a.checkCommand(),
		a.repairCommand(),
		a.guardCommand(),
		a.demoCommand(),
		a.benchCommand(),
		a.benchChildCommand(),
		a.completionCommand(),
		a.versionCommand(),
	)
	a.bindCompletions(root)
	a.setUpHelp(root)
	return root
}

// prepare runs before every command.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.applyEnvironment(cmd); err != nil {
		return err
	}
	return a.startLogging()
}
