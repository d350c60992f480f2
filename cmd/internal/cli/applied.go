package cli

import (
	"slices"

	"github.com/spf13/pflag"
	"github.com/tarnproject/tarn/kube"
)

// applied is the flag for annotations in which appliers repeat whole objects. The known ones
// are always included: a user's own list without kubectl's would show what is secret.
type applied struct{ further []string }

func (a *applied) bind(flags *pflag.FlagSet) {
	flags.StringSliceVar(&a.further, "applied-annotations", nil, "further annotations that repeat objects as they were applied, hidden in Secrets and not written to disk: example.com/last, *-original")
}

// appliedCopies returns all such annotations.
func (a *applied) appliedCopies() []string { return slices.Concat(kube.AppliedCopies(), a.further) }
