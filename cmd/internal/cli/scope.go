package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// scope holds kubectl's flags that narrow what a command reads.
type scope struct {
	allNamespaces bool
	labels        string
	fields        string
}

func (s *scope) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	flags.StringVarP(&s.labels, "selector", "l", "", "only objects with these labels: app=web,tier!=db")
	flags.StringVar(&s.fields, "field-selector", "", "only objects with these fields: status.phase=Running")
}

// check rejects wrong selectors before the server does.
func (s *scope) check() error {
	if _, err := labels.Parse(s.labels); err != nil {
		return usagef("--selector %q is wrong: %v; write it as app=web,tier!=db", s.labels, err)
	}
	if _, err := fields.ParseSelector(s.fields); err != nil {
		return usagef("--field-selector %q is wrong: %v; write it as status.phase=Running", s.fields, err)
	}
	return nil
}

// namespaces returns the namespaces to read, given the default; none means all.
func (s *scope) namespaces(byDefault string) []string {
	if s.allNamespaces || byDefault == "" {
		return nil
	}
	return []string{byDefault}
}
