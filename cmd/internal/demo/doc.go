// Package demo simulates a busy cluster: it writes to an API server what
// controllers, a scheduler and kubelets would write.
//
// It is a discrete-event simulation. One queue holds all planned actions, one
// random generator makes all choices, and one goroutine does everything. So a seed
// reproduces a run, and a test can simulate an hour in a moment. [Workload.Run]
// runs the simulation in real time.
//
// Why not real controllers on the API server: they need minutes to do what can be
// shown in seconds, they fail when they like and not when a demonstration needs
// it, and they would be most of the program.
package demo
