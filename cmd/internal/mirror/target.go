package mirror

import (
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/verify"
)

// Target returns the table in the form that package verify compares with the server.
func (t *Table) Target() verify.Target[Object] {
	var sources []tarn.Source[Object]
	for _, s := range t.Sources() {
		sources = append(sources, s)
	}
	return verify.Target[Object]{
		Name: t.resource.Name(), Replica: t.replica, Store: t.store,
		Sources: sources, Transform: t.transform,
	}
}
