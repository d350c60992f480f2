// Package memory is the store that lives in the process: a map of the newest
// objects, the version they show, and secondary indexes over them.
//
// A [Store] is written in one of two ways. A reflector brings it from state to
// state with Replace and Apply. Code that has no reflector writes it by key:
// Put, Remove, SetVersion, or several of these as one step with Batch.
//
// Every write takes effect as a whole: no reader ever sees half of one. Objects
// are shared with their readers and must not be changed once they are stored.
package memory
