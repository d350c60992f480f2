// Package demo is a lively cluster without machines: what controllers, a
// scheduler and kubelets would write to an API server if it had any.
//
// It is a discrete-event simulation. One agenda holds what happens when, one
// source of chance makes all choices, and one goroutine does everything, so that
// a seed tells the whole story and a test can live through an hour of it in a
// moment. [Workload.Run] plays it at the pace of the clock.
//
// Why not real controllers on the API server: they need minutes to do what can be
// shown in seconds, they fail when they like and not when a demonstration needs
// it, and they would be most of the program.
package demo
