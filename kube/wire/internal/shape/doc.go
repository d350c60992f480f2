// Package shape knows how values of Go types lie in memory.
//
//   - A [Shape] says where in a type there are references to other memory, so that the
//     memory of an object is walked without reflection.
//   - [Memory] is what a reference leads to. [Search] finds the objects that have some
//     memory, and [Differences] the memory in which two objects differ.
//   - Fields have their names in JSON, by which people name them: see [JSONName] and
//     [Drop].
//   - Nothing here holds an object after a call has returned.
//
// It imports nothing of this module. Every other package of kube/wire may import it.
package shape
