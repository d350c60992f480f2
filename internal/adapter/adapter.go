// Package adapter restricts some functions of package tarn to the drop-in packages.
//
// Package cache runs the steps of a reflector separately and changes the options of an
// existing replica, because client-go's API allows that to its callers. No other package
// should: the functions for it need a [Key], which only packages of this project can make.
//
// Why not move them into an internal package: they use private fields of tarn's types, and
// Go has no other way to give one package access.
package adapter

// A Key gives access to [github.com/tarnproject/tarn.AdaptReplica] and
// [github.com/tarnproject/tarn.AdaptReflector].
type Key struct{}
