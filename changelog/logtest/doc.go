// Package logtest is the conformance suite of change logs, in memory and on disk: what is
// committed to the sink is compared with what the log returns, in every way that there is
// to ask.
package logtest
