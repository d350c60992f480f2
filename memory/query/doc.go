// Package query is the query language: conditions on fields, selectors in
// Kubernetes' syntax, an order, and pages.
//
//	web := query.Where(query.Field("spec.nodeName").Is("node-1")).Labels("app=web").Sort("-spec.priority").Limit(50)
//	page, err := pods.Select(web)
//
// A [Query] is a value that knows no store. [Select], [Count] and [Explain] answer
// it from a [State], which a store implements: the number of objects, the indexes,
// and a scan of the objects in a span. They check the query, choose the index that
// leads to the fewest objects, test each object for the conditions that the index
// does not answer, sort, and cut pages.
//
// Package memory implements State and has Select, Count and Explain as methods of
// its stores and snapshots, so programs call those, and the functions here only
// with a store of their own.
//
// # Why the store imports the language
//
// The methods of a store must take a query, so the store has to know the language
// in any case. The other way round, with functions here that take a *memory.Store,
// the store would have to export its cells, indexes and states for this package
// alone, and no other store could be queried.
//
// This package decides what an answer costs, and the store what a step costs: a
// query reads a State's counts once, and calls one function for each object.
package query
