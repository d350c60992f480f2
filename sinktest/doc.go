// Package sinktest checks that a sink keeps the contract of [tarn.Sink], and of
// [tarn.SinkLister] and [tarn.Restorer] if it implements them. Call [Run] from a test of
// the package that has the sink.
//
// Each line of the contract is a subtest, named by what it demands. After each step the
// sink is closed and opened again, as the next process would, and must say exactly what
// was committed.
package sinktest
