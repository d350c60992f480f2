package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/sqlite"
)

// exitDamaged is the exit code of check if something is wrong. If that is unknown, the code
// is that of verify.
const exitDamaged = 1

func (a *app) checkCommand() *cobra.Command {
	var keyFile, format string
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Check a replica directory for damage",
		Long: `Check a replica directory, as fsck checks a file system: who can read it, the
structure of the database, its tables, and every row by its checksum. Nothing is
changed, and a mirror that writes the directory is not disturbed.

It exits with 0 if nothing is wrong, with 1 if something is, and with 2 if it
cannot tell.`,
		Example: `  tarn check replica
  tarn check sealed --key-file key -o json`,
		Args:              oneDirectory,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.check(cmd.Context(), args[0], keyFile, format) },
		ValidArgsFunction: completeDirectory,
	}
	bindKey(cmd, &keyFile)
	cmd.Flags().StringVarP(&format, "output", "o", "", "how to print: a table, or json")
	_ = cmd.RegisterFlagCompletionFunc("output", choices("json"))
	return cmd
}

func (a *app) repairCommand() *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use:   "repair DIR",
		Short: "Save the intact objects of a damaged replica directory",
		Long: `Write the intact objects of a damaged replica directory to a new file, which
replaces the old one. The next mirror reads the lost objects from the server,
and serves the others meanwhile. A directory that is not damaged is not changed.

The mirror must not be running. A mirror repairs nothing itself: it rebuilds a
damaged directory, for which it needs the server.`,
		Example: `  tarn repair replica
  tarn repair sealed --key-file key`,
		Args:              oneDirectory,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.repair(cmd.Context(), args[0], keyFile) },
		ValidArgsFunction: completeDirectory,
	}
	bindKey(cmd, &keyFile)
	return cmd
}

func oneDirectory(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%q takes one replica directory, and there are %d", cmd.CommandPath(), len(args))
	}
	return nil
}

func completeDirectory(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func (a *app) check(ctx context.Context, dir, keyFile, format string) error {
	if format != "" && format != "json" {
		return usagef("-o cannot be %q: leave it out for a table, or say json", format)
	}
	key, err := a.key(keyFile)
	if err != nil {
		return a.unknownResult(ctx, err)
	}
	report, err := sqlite.Check(ctx, dir, key)
	if err != nil {
		return a.unknownResult(ctx, explainDirectory(dir, err))
	}
	if format == "json" {
		err = printReportJSON(a.out, report)
	} else {
		err = printReport(a.out, report)
	}
	switch {
	case err != nil:
		return a.unknownResult(ctx, err)
	case report.OK():
		return nil
	case format == "json":
		return &exitError{code: exitDamaged}
	}
	return &exitError{code: exitDamaged, err: fmt.Errorf("%s is damaged; %q saves the intact objects, and a mirror rebuilds the directory when it starts", dir, a.program+" repair "+dir)}
}

func printReportJSON(out io.Writer, r *sqlite.Report) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// printReport prints a line for each collection, and one for each finding.
func printReport(out io.Writer, r *sqlite.Report) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	if len(r.Collections) > 0 {
		fmt.Fprintln(w, "COLLECTION\tOBJECTS\tDAMAGED\tMISSING\tVERSION\tSTATE")
	}
	objects := 0
	for _, c := range r.Collections {
		state := "complete"
		switch {
		case c.Bad > 0 || c.Missing > 0:
			state = "damaged"
		case !c.Complete && c.Version == "":
			state = "not all written yet"
		case !c.Complete:
			state = "to be listed by the next start"
		}
		objects += c.Objects
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", term.Clean(c.Name), c.Objects, c.Bad, c.Missing, term.Clean(string(c.Version)), state)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range r.Findings {
		fmt.Fprintln(out, term.Clean(f.String()))
	}
	if r.More > 0 {
		fmt.Fprintf(out, "and %d more\n", r.More)
	}
	if !r.OK() {
		return nil
	}
	_, err := fmt.Fprintf(out, "nothing is wrong with %s and %s (%s, log %s)\n", plural(len(r.Collections), "collection"), plural(objects, "object"), size(uint64(r.Bytes)), size(uint64(r.LogBytes)))
	return err
}

func (a *app) repair(ctx context.Context, dir, keyFile string) error {
	key, err := a.key(keyFile)
	if err != nil {
		return err
	}
	done, err := sqlite.Repair(ctx, dir, key)
	if err != nil {
		if errors.Is(err, sqlite.ErrInUse) {
			err = fmt.Errorf("%w: end the mirror first", err)
		}
		return explainDirectory(dir, err)
	}
	if !done.Changed {
		_, err := fmt.Fprintln(a.out, "nothing is wrong; nothing was changed")
		return err
	}
	for _, f := range done.Found.Findings {
		fmt.Fprintln(a.out, term.Clean(f.String()))
	}
	if done.Found.More > 0 {
		fmt.Fprintf(a.out, "and %d more\n", done.Found.More)
	}
	for _, name := range slices.Sorted(maps.Keys(done.Saved)) {
		history := ""
		if n := done.States[name]; n > 0 {
			history = ", and " + plural(n, "state") + " of its history"
		}
		fmt.Fprintf(a.out, "saved: %s of %s%s\n", plural(done.Saved[name], "object"), term.Clean(name), history)
	}
	if len(done.Saved) == 0 {
		fmt.Fprintln(a.out, "nothing could be saved: the directory is empty now")
	}
	_, err = fmt.Fprintln(a.out, "the missing objects come from the server when the mirror starts")
	return err
}
