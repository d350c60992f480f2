// Package adapter keeps what package tarn has for the drop-in packages out of the reach
// of everyone else.
//
// Package cache stands between the steps of a reflector and changes the options of a
// replica that exists already, because client-go's API lets its callers do so. Nobody
// else should: functions that allow it ask for a [Key], which only packages of this
// project can make.
//
// Why not move them into an internal package: they use private fields of tarn's types,
// and Go has no other way to let one package in.
package adapter

// A Key opens [github.com/tarnproject/tarn.AdaptReplica] and
// [github.com/tarnproject/tarn.AdaptReflector].
type Key struct{}
