// Package enginetest proves that an engine gets every state of a cluster once: it changes
// objects, kills the feeding process and the engine at random, and compares what the engine
// has with a model of the source.
//
// An engine provides an [Engine] and the process that feeds it, and calls [Run].
package enginetest
