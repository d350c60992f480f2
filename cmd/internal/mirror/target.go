package mirror

import (
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/verify"
)

// Target is the table as package verify compares it with the server.
func (t *Table) Target() verify.Target[Object] {
	sources := make([]tarn.Source[Object], len(t.sources))
	for i, s := range t.sources {
		sources[i] = s
	}
	return verify.Target[Object]{
		Name: t.resource.Name(), Replica: t.replica, Store: t.store,
		Sources: sources, Transform: t.transform,
	}
}
