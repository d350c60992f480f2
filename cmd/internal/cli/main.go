package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tarnproject/tarn/cmd/internal/term"
	"k8s.io/klog/v2"
)

// Exit codes. 0 and 1 are kubectl's. kubectl also ends with 1 for a wrong command line. This
// program has its own code for that, as most other programs do, so that scripts can tell a
// typing error from a failure.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// Main is the program: it runs a command line, with args[0] as the name under which it was
// called, and returns the exit code.
//
// A live view that ends by Ctrl-C has done its work: the code is 0. A command that would have
// ended by itself and was interrupted ends with 130, as shells report for programs killed by
// the signal. A second Ctrl-C kills the program.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	a := &app{
		program: programName(args[0]),
		in:      in, out: out, errOut: errOut,
		getenv:   os.LookupEnv,
		terminal: func() (term.Terminal, bool) { return term.Of(out) },
		klog:     klog.SetSlogLogger,
		execute:  executeSelf,
	}
	return a.main(ctx, commandLine(args))
}

// programName is the name by which the user ran the program: kubectl runs plugins by names
// of this form.
func programName(arg0 string) string {
	name := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	if strings.HasPrefix(name, "kubectl-") || strings.HasPrefix(name, pluginCompletion) {
		return "kubectl tarn"
	}
	return "tarn"
}

// pluginCompletion is the name under which kubectl looks for the completion of its plugin
// tarn. The plugin itself answers if it is linked to that name.
const pluginCompletion = "kubectl_complete-tarn"

func commandLine(args []string) []string {
	if strings.HasPrefix(filepath.Base(args[0]), pluginCompletion) {
		return append([]string{"__complete"}, args[1:]...)
	}
	return args[1:]
}

func (a *app) main(ctx context.Context, args []string) int {
	out := &checkedWriter{Writer: a.out}
	a.out = out
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the process
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = out.failed()
	}
	return a.report(ctx, err)
}

// report prints each error on one line, and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	var own *exitError
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own):
		if own.err != nil {
			a.complain(own.err)
		}
		return own.code
	case errors.As(err, &usage):
		a.complain(usage)
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(a.errOut, "tarn: interrupted")
		return exitInterrupted
	}
	a.complain(err)
	return exitFailed
}

func (a *app) complain(err error) {
	if several := joined(err); several != nil {
		for _, err := range several {
			a.complain(err)
		}
		return
	}
	fmt.Fprintf(a.errOut, "tarn: %s\n", oneLine(a.explain(err)))
}

// joined splits an error of errors.Join. An error that merely wraps several says more than
// they do, and stays whole.
func joined(err error) []error {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(several.Unwrap()...).Error() {
		return nil
	}
	return several.Unwrap()
}
