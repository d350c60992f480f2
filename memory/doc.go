// Package memory is the store in the process: the newest objects, their version,
// indexes over them, and answers to queries in the language of package
// [github.com/tarnproject/tarn/memory/query].
//
// A [Store] is written in one of two ways. A reflector brings it from state to
// state with Replace and Apply. Code without a reflector writes it by key: Put,
// Remove, SetVersion, or several of these as one step with Batch.
//
// Every write takes effect as a whole: no reader ever sees half of one. Readers
// never wait for a writer and no writer for readers: each read, walk and query sees
// one state, the newest one when it began, and a [Snapshot] keeps a state for as
// long as it is needed. Objects are shared with their readers and must not be
// changed once they are stored.
//
// # How it is built
//
// Each object has a cell that stays in place while the object changes: a hash table
// finds it by key, an ordered tree holds all cells, and each index holds the cells
// by value. An update, by far the most common write, only adds a new version to the
// cell. Tree and indexes change when an object is added, deleted, or gets another
// index value, and then by copying the few nodes on the way (trees of old states do
// not change). States are numbered; a reader of state n skips versions of later
// states. Versions that no reader can see any more are released.
//
// Why not a copy-on-write tree alone, with the objects in it: in a trial of 100,000
// objects (tidwall/btree 1.8.1) it took 15 times as long as a map to find one, 7
// times to write one, and 130 times right after a snapshot, and each index would
// pay that again. With cells an update of an object with two indexes takes 1.3 to
// 1.7 times as long as in client-go's store, with or without snapshots, and finding
// one about as long (BenchmarkUpdate, BenchmarkGet).
//
// # What it costs
//
// An object with two indexes takes about 200 bytes, keys included and the object
// not, as much as in client-go's store; 20 to 35 more once all objects have been
// walked twice, see page. An index entry, one object under one value, takes 14
// bytes (client-go: 36 to 52), in the fourth and further indexes 46, because an
// object has room for three; each different value takes another 80, and its text in
// an index by field path. Measured with 100,000 pods by the trial store-heap of the
// benchmarks, which also has the times.
package memory
