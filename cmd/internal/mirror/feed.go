package mirror

import (
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
)

// Feed says where else the tables of a mirror are written to.
type Feed struct {
	// Sink returns the sink of a table. The columns are those that the definition of a custom
	// resource adds.
	Sink func(of kube.Origin, defined []columns.Column) (tarn.Sink[Object], error)
	// LastApplied and Without are as in [Disk].
	LastApplied bool
	Without     []string
}
