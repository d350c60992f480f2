// Package recent remembers what a decoder saw recently: texts, values, and how
// often the content of a field repeats.
//
//   - Everything here is bounded: see [Table] for the rule of replacement.
//   - A wrong guess costs time or memory, and never changes a value.
//   - Nothing is safe for several goroutines at a time: each reader has its own.
//
// It imports nothing of this module.
package recent
