// Package changelog keeps every state that a copy took, for a bounded time and number of
// bytes, and knows what it did not see.
//
// A log is a [tarn.Sink]: in memory it is a [Ring], on disk it belongs to the content of
// package sqlite. Readers see both as a [Log]: from a version, from a time, of one key, all
// in order, or as of a place. A range in which states may be missing is a [Gap], which
// comes through readers as a value, in its place among the states. A reader that asks for
// what is no longer kept gets [ErrExpired], and never a log with a hole.
//
// Two clocks are kept apart. The sequence number, and within one section the version, is
// the order. The time Heard is when this process learned of a state, by its own clock,
// which may jump: the place of a time is the last entry whose Heard is at or before it.
//
// States are stored as differences against a whole state; see [AppendDifference].
package changelog
