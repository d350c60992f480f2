package cli

import (
	"slices"

	"github.com/spf13/pflag"
	"github.com/tarnproject/tarn/kube"
)

// applied is the flag about annotations in which appliers repeat whole objects.
// Those that are known are always among them: a list of one's own that forgets
// kubectl's would show what is secret.
type applied struct{ further []string }

func (a *applied) bind(flags *pflag.FlagSet) {
	flags.StringSliceVar(&a.further, "applied-annotations", nil, "further annotations that repeat objects as they were applied, to be hidden in Secrets and not written to disk: example.com/last, *-original")
}

// appliedCopies names all such annotations.
func (a *applied) appliedCopies() []string { return slices.Concat(kube.AppliedCopies(), a.further) }
