package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// executeSelf runs this program again and returns what it printed.
func executeSelf(ctx context.Context, args, environment []string, stdin io.Reader) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the program cannot find itself to start it again: %w", err)
	}
	child := exec.CommandContext(ctx, self, args...)
	child.Env = append(os.Environ(), environment...)
	child.Stdin = stdin
	var complaint bytes.Buffer
	child.Stderr = &complaint
	out, err := child.Output()
	if err == nil {
		return out, nil
	}
	failure := func(err error) error {
		if child.ProcessState != nil && child.ProcessState.ExitCode() == exitPassing {
			return passing{err}
		}
		return err
	}
	if said := strings.TrimSpace(complaint.String()); said != "" {
		lines := strings.Split(said, "\n")
		return nil, failure(errors.New(strings.TrimPrefix(lines[len(lines)-1], "tarn: ")))
	}
	return nil, failure(fmt.Errorf("the process that measures failed: %w", err))
}

// inherited passes the common flags to a child process. It uses the environment, since others
// can read command lines, and a flag may be a token. Flags that can be repeated do not fit
// there, and hold no secrets: they are passed as arguments.
func inherited(cmd *cobra.Command) (args, environment []string) {
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			return
		}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range several.GetSlice() {
				args = append(args, "--"+f.Name+"="+value)
			}
			return
		}
		environment = append(environment, variable(f.Name)+"="+f.Value.String())
	})
	return args, environment
}
