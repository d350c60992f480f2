package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarnproject/tarn/internal/guard"
)

func (a *app) guardCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Find out which cached object a program in guard mode wrote to",
		Long: `A program that runs with TARN_GUARD=1 has the objects of its caches in memory
that cannot be written. A write to one by mistake ends the process with the
stack of the goroutine that writes, and an address. The command explain turns
the address into object and field.`,
		Example: `  TARN_GUARD=1 go test ./...
  tarn guard explain 0x7f3a41e00545`,
	}
	cmd.AddCommand(a.guardExplainCommand())
	return cmd
}

func (a *app) guardExplainCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "explain ADDRESS",
		Short: "Say which object and field an address belongs to",
		Long: `Say which object and field an address belongs to, such as the one in

  unexpected fault address 0x7f3a41e00545

The process in guard mode has written a record of its objects, their keys and
where their fields are, but no values, to a file in the directory for temporary
files. It says at its start which one. Without --file the newest is read.`,
		Example: "  tarn guard explain 0x7f3a41e00545",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			address, err := strconv.ParseUint(strings.TrimPrefix(args[0], "0x"), 16, 64)
			if err != nil {
				return fmt.Errorf("%q is not an address: it should look like 0x7f3a41e00545", args[0])
			}
			if file == "" {
				if file, err = guard.LastFile(); err != nil {
					return err
				}
			}
			text, err := guard.ExplainFile(file, uintptr(address))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, text)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the record of the process; by default the newest")
	_ = cmd.MarkFlagFilename("file", "json")
	return cmd
}
