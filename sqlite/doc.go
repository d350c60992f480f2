// Package sqlite is the store on disk: what a replica knew survives the process,
// and the same file answers SQL.
//
//	db, err := sqlite.Open(dir, sqlite.Options{})
//	pods, err := sqlite.NewSink(db, sqlite.Collection{Name: "pods"}, codec)
//	opts.Sinks = []tarn.Sink[*Pod]{pods}
//	replica, err := tarn.NewReplica(source, memory.New[*Pod](), opts)
//
// A [Sink] follows a replica that is in memory: it is written in groups, and when it
// cannot be written, the replica works without it and Health says so. A [Store] is the
// store of a replica that is on disk only: the replica needs little memory, whatever the
// number of its objects, and pays for each read. Its first state is written to disk while
// it arrives.
//
// What is promised:
//
//   - Objects and the version that they show are committed in one transaction.
//     After a crash at any moment the file holds a state that the store really
//     had, with that state's version.
//   - A file that is damaged is reported, removed and built anew. It is a copy:
//     nothing is lost that the source does not have. [Check] and [Repair] say what
//     is wrong with one, and save what is good.
//   - What was deleted, changed or dropped is in no file of the directory any more
//     a minute later, unless somebody reads the file for longer.
//   - Content of another source, selector, schema or format is never taken for
//     this one's.
//   - Files are 0600 in a directory of 0700, and one process writes it at a time. A
//     directory or a file of another user, or a link in its place, is refused.
//   - The log beside the file is bounded, whoever reads it; see Options.LogLimit.
//
// The file is an ordinary SQLite database in WAL mode. Any SQLite tool can read
// it while it is written; [Query] does so from Go, read-only beyond what mode=ro
// can promise.
package sqlite
