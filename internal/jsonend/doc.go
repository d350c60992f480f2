// Package jsonend finds where a JSON value ends, in bytes that arrive piece by piece, without
// reading the value.
//
// A [Scan] follows quotes, escapes and brackets, and nothing else. [Member] finds a member of an
// object in the same way. A Scan promises:
//
//   - In valid JSON, the value ends where encoding/json says it ends.
//   - Whatever the bytes are, and however they are cut into pieces, the result is that of a
//     loop that looks at one byte after the other. What is malformed between the brackets is
//     left to a decoder, so that a malformed value can be skipped and the next one read.
//   - It reads no byte outside of the slice, keeps no reference to it, and does not allocate.
//   - All processors give the same results.
//
// # How
//
// Most strings in JSON are short, so a loop over bytes or words spends its time on branches
// that the processor guesses wrong. A Scan takes 64 bytes at a time as four masks, with a bit
// for each byte: quotes, backslashes, opening and closing brackets. Which bytes are in strings
// follows from the masks by arithmetic. Brackets are counted, and looked at one by one only
// in blocks in which the value, or one directly within it, may begin or end.
//
// # Why assembly
//
// Go has no vector instructions. With 64 bit registers the masks alone take about 250
// instructions a block. With AVX2 and PCLMULQDQ all of it takes 60, and an eighth of the time
// (BenchmarkDeep). So for amd64 the loop of deep is in assembly: it passes over blocks, mostly
// without branches that depend on the text, reads whole blocks within the slice only, and stops
// at the first block that needs a closer look. The same loop in Go, deepGeneric, is there for
// all other processors; tests and a fuzzer compare all of them from every state.
//
// With AVX-512 a mask takes two instructions instead of six, and the loop 0.7 of the time of
// AVX2. The two loops differ in how they make the masks, and have the rest in common. arm64 uses
// the loop in Go: NEON has no instruction that makes a mask of bytes, and what several
// instructions would save has not been measured.
//
// # Why not a library
//
// Libraries for JSON with vector instructions parse whole documents, which must be in memory:
// they make an index or values of all of it. Some generate machine code when the program runs,
// which depends on the Go version. Here a list of any length passes through a window, and
// nothing is wanted of most of it.
package jsonend
