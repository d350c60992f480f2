// Package synctrack answers "has everything that was there at the start been
// dealt with?" for code that hands an informer's events on.
//
// An informer has synced when it has given its whole first list to its handlers.
// A handler that passes objects on is not done then: call Start for each object
// of the initial list, Finished when its consequences are done with, and
// UpstreamHasSynced when the informer has synced; HasSynced then answers for the
// whole chain.
//
//   - [SingleFileTracker] counts: for work that is finished one by one in the
//     order it came, or where a count is all there is.
//   - [AsyncTracker] remembers keys: for work that is finished in any order and
//     maybe more than once.
//
// [Lazy] is independent of that: a value computed from changing inputs, at most
// once per change and only when somebody asks.
//
// The package stands in for k8s.io/client-go/tools/cache/synctrack: same names,
// own code.
package synctrack
