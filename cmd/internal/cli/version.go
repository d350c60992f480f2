package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// build describes how the program was built.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// ClientGo is the version of client-go whose conventions the program follows.
	ClientGo string `json:"clientGo,omitempty"`
}

// buildVersion reads what the go command wrote into the program, so that
// nothing needs to be passed at link time.
func buildVersion() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, dep := range info.Deps {
		if dep.Path == "k8s.io/client-go" {
			b.ClientGo = dep.Version
		}
	}
	return b
}

func (b build) details() []string {
	details := []string{b.Go, b.Platform}
	if b.ClientGo != "" {
		details = append(details, "client-go "+b.ClientGo)
	}
	if b.Revision != "" {
		details = append(details, "revision "+b.Revision)
	}
	return details
}

func (a *app) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long: `Print the version of this program and of what it was built with. No cluster is
asked.`,
		Example: `  tarn version
  tarn version -o json`,
		Args: a.noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := buildVersion()
			switch output {
			case "":
				_, err := fmt.Fprintf(a.out, "tarn %s (%s)\n", b.Version, strings.Join(b.details(), ", "))
				return err
			case "json":
				encoder := json.NewEncoder(a.out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(b)
			}
			return usagef("-o is json, not %q", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

// noArguments is for commands without arguments.
func (a *app) noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q takes no arguments, and got %q", cmd.CommandPath(), args[0])
	}
	return nil
}
