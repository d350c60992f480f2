// Package story reads and plays the stories that tests are written as: text that
// says what a server answers, what its user does, and what must be seen of it.
//
// The format is described in docs/testing.md. This package knows the format and
// the clock, but neither objects nor requests: the runner of a story says what an
// object is, which client asks, and what is compared with which section.
//
//   - [File] and [Story] are the text, taken apart, and written back.
//   - [Script] and [Answer] are the section "server".
//   - [Server] gives the answers and records the requests.
//   - [Player] plays the events of one watch.
package story
