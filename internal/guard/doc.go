// Package guard keeps objects in memory that cannot be written, so that a program which
// writes to a cached object by mistake stops at the line that writes.
//
// A [Session] belongs to one copy. Its Freeze returns a deep copy of an object in pages
// that are read-only from then on. A write ends the process with the stack of the
// goroutine that writes, and the address; [Explain] turns the address into object and
// field, within the process or from the file that a session writes.
//
// What Go allows limits it:
//
//   - The garbage collector does not see these pages. What they refer to outside of them,
//     maps and interfaces, is kept alive beside them, for as long as the process lives.
//   - Maps cannot live there. They are copied with what they lead to, hashed, and compared
//     every second; messages of protobuf in them are not copied. Objects whose methods
//     write to them, as those of protobuf's messages do, are compared too.
//   - Pages are never given back: guard mode is for tests.
//   - The race detector does not see reads of these pages. It needs to see none: a race
//     needs a write.
package guard
