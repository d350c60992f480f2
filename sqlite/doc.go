// Package sqlite keeps replicas on disk: their content survives the process, and the
// same file answers SQL.
//
//	db, err := sqlite.Open(dir, sqlite.Options{})
//	pods, err := sqlite.NewSink(db, sqlite.Collection{Name: "pods"}, codec)
//	opts.Sinks = []tarn.Sink[*Pod]{pods}
//	replica, err := tarn.NewReplica(source, memory.New[*Pod](), opts)
//
// A [Sink] follows a replica in memory. It is written in groups. While it cannot be
// written, the replica works without it and Health reports that. A [Store] is the store
// of a replica that is on disk only: it needs little memory for any number of objects,
// and every read reads the file. Its first state is written to disk while it arrives.
//
// Guarantees:
//
//   - Objects and their version are committed in one transaction. After a crash at
//     any moment the file holds a state that the store had, with its version.
//   - A damaged file is reported, removed and built again. It is a copy: the source
//     has everything in it. [Check] reports what is wrong with a file, and [Repair]
//     saves the good objects.
//   - Deleted, changed or dropped content is in no file of the directory after a
//     minute or two, unless a reader keeps the file open for longer.
//   - Content of another source, selector, schema or format is never used.
//   - Files have mode 0600 in a directory with mode 0700, and one process writes at
//     a time. A directory or file of another user, or a link in its place, is refused.
//   - The log beside the file is bounded, even while others read it; see
//     Options.LogLimit.
//
// The file is an ordinary SQLite database in WAL mode. Any SQLite tool can read it
// while it is written; [Query] does so from Go, with stricter limits than mode=ro.
package sqlite
