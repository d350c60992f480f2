package tarn

import (
	"context"
	"iter"
	"strings"
	"time"
)

// A Key names one object within its collection: "namespace/name" or "name" in
// Kubernetes. It outlives the object: delete and create again gives the same
// key with another [Meta.UID].
type Key string

// HasPrefix says whether the key begins with prefix.
func (k Key) HasPrefix(prefix Key) bool { return strings.HasPrefix(string(k), string(prefix)) }

// Meta is what the engine must know of an object to keep it: where it belongs,
// which state it is, and whether it is still the same object.
type Meta struct {
	Key Key
	// Version of this state of the object; empty where the source has none.
	Version Version
	// UID tells an object from another one created later under the same key;
	// empty where the source has none.
	UID string
}

// A Source is a remote collection that can be read whole at a version and
// followed from a version.
//
//   - The reflector calls List and Watch from one goroutine at a time.
//   - A version that List returned is valid for Watch until the source compacts
//     it away; then Watch, or its stream, fails with [ReasonExpired].
//   - Failures are told apart by [ReasonOf]: wrap them with [Because].
//   - List, Watch and Next end promptly when ctx does.
type Source[T any] interface {
	List(ctx context.Context, q ListQuery) (Page[T], error)
	Watch(ctx context.Context, q WatchQuery) (Stream[T], error)
	// Describe reads an object's identity. An error says that the object is
	// bad: nil, foreign, nameless. It must also work on what a Transform made
	// of the object, and may be called by several goroutines at a time.
	Describe(object T) (Meta, error)
}

// ListQuery asks for a collection, or for the next page of one.
type ListQuery struct {
	// AtLeast is the oldest acceptable state: [Any], [Latest] (a consistent
	// read), or a version that was seen before.
	AtLeast Version
	// Limit is the largest number of items wanted in one page; 0 means all.
	Limit int64
	// Continue is the token of the page before, empty for the first one.
	Continue string
	// Exact asks for the state at AtLeast itself and for no newer one, to compare
	// it with a copy. A source that cannot may take no notice: Page.Version tells
	// which state it is.
	Exact bool
	// Afresh asks that nothing be used again that was made for earlier answers, such
	// as parts that objects have in common: someone may have changed it.
	Afresh bool
	// Held is where objects will be held, if they are as the source gives them and
	// stay in memory; else nil. A source can use what is there again for the next
	// states of the same objects.
	Held Holder
	// Key asks for one object instead of all. A source that cannot read just one may
	// return more.
	Key Key
}

// Page is a part of a collection, all of one state.
type Page[T any] struct {
	Items []T
	// Bad holds the items that could not be made into a T.
	Bad []BadObject
	// Version is the state that all pages of this list show.
	Version Version
	// Continue is the token for the next page, empty after the last.
	Continue string
}

// WatchQuery asks for the changes of a collection.
type WatchQuery struct {
	// From is the version after which changes are wanted. With Initial it is
	// the oldest acceptable state, as in [ListQuery.AtLeast].
	From Version
	// Initial asks that the stream begin with the whole collection, one EventAdded
	// each, and mark the end of it by an EventBookmark with InitialEnd.
	Initial bool
	// Afresh is that of [ListQuery].
	Afresh bool
	// Held is that of [ListQuery].
	Held Holder
	// Timeout is after how long the source should end the stream by itself.
	Timeout time.Duration
}

// A Stream delivers changes in the source's order.
//
//   - Next waits for an event, then stores as many as are at hand in buf and
//     returns how many; it returns an error only with none.
//   - Next fails with io.EOF when the source ended the stream in good order.
//   - When ctx ends Next returns its error and loses nothing: the stream can be
//     read on with another context.
//   - Close releases the stream; it may be called more than once.
type Stream[T any] interface {
	Next(ctx context.Context, buf []Event[T]) (int, error)
	Close()
}

// EventType says what an [Event] is.
type EventType uint8

const (
	// EventAdded, Modified and Deleted carry the object; for Deleted it is the last
	// state.
	EventAdded EventType = iota + 1
	EventModified
	EventDeleted
	// EventBookmark says only that the source has come to a version.
	EventBookmark
	// EventUndecodable stands for an event of which not even the kind could be read.
	// The stream goes on after it, but what it said is lost: the state is read
	// anew.
	EventUndecodable
)

// Event is one step of a stream.
type Event[T any] struct {
	Type   EventType
	Object T
	// Version is that of an EventBookmark; other events have it in their object.
	Version Version
	// InitialEnd marks the EventBookmark that ends the initial events.
	InitialEnd bool
	// Bad, if it has an Err, says what is wrong with the event: its object is
	// not taken.
	Bad BadObject
}

// A Maintainer is a source that has work to do for as long as a copy of it is kept: one
// whose objects share memory verifies that no program writes to it. A source that wraps
// another one has a method Unwrap that returns it; the engine then finds the Maintainer
// behind it.
type Maintainer[T any] interface {
	// Maintain runs in a goroutine of its own from the start of the reflector until
	// ctx ends, and returns then.
	Maintain(ctx context.Context, held Copy[T])
}

// A Copy is what a [Maintainer] sees of the objects that were made of its own.
type Copy[T any] interface {
	// All walks the objects that are held in memory. Those of a store that makes
	// them anew each time it is asked are not among them.
	All() iter.Seq2[Key, T]
	// Repair reports objects that are not what the source said, and has them read
	// again.
	Repair(damaged []Damage)
}

// Item is an object with what is known of it.
type Item[T any] struct {
	Meta
	Object T
}

// A Store takes what a reflector learns.
//
//   - Replace brings the store to exactly these items at this position, and leaves
//     no other one; Apply brings it on by some changes, and one section to a position.
//     Each takes effect as a whole, position included, or not at all.
//   - Apply without changes is a bookmark: only the position moves.
//   - One goroutine writes; the store does not keep the slices.
//   - An error that wraps [ObjectErrors] concerns only the objects it names,
//     which were taken as far as possible; all else has been taken. Any other
//     error means that nothing has.
type Store[T any] interface {
	Replace(items []Item[T], at Position) error
	Apply(changes []Change[T], at Position) error
}

// A Reader reads a store's content. Any number of goroutines may read while one
// writes; each call sees one state that the store really had.
type Reader[T any] interface {
	Get(key Key) (object T, ok bool)
	// All walks one state, whatever is written meanwhile.
	All() iter.Seq2[Key, T]
	Len() int
	// Version is the state that the content shows, of several sections the oldest.
	Version() Version
}

// ReadStore is a store that can be asked. Only such a store can be relisted by
// difference, and back a [Replica].
type ReadStore[T any] interface {
	Store[T]
	Reader[T]
}

// The interfaces below are what a store may be able to do besides. The engine finds them
// by [As], and in no other way.

// A StoreWrapper is a store that wraps another one, as a store in memory with a disk
// behind it does. It has all abilities of the store that it wraps.
type StoreWrapper[T any] interface {
	Unwrap() ReadStore[T]
}

// A PrefixReader is a store in the order of keys: what concerns one section of a
// replica does not walk the others.
type PrefixReader[T any] interface {
	// Prefix walks one state of the objects whose keys have a prefix.
	Prefix(prefix Key) iter.Seq2[Key, T]
}

// A Holder is a store that keeps its objects in memory. Any number of goroutines may call
// it at a time.
type Holder interface {
	// Held returns the object that was last written under a key: the same one, not
	// one that is decoded from bytes for each call.
	Held(key Key) (object any, ok bool)
	// Len is the number of objects.
	Len() int
}

// An IndexStore is a store that finds objects by more than their keys, as the one
// of package memory does. [IndexBy] needs it.
type IndexStore[T any] interface {
	// AddIndexes adds indexes by name, each with the function that gives the
	// values by which an object is to be found, while others read and write. An
	// [ObjectErrors] names objects that were left out; any other error means that
	// no index was added.
	AddIndexes(functions map[string]func(T) ([]string, error)) error
	DropIndex(name string) error
	// Lookup walks the objects of one state that have a value. The error says
	// that there is no such index.
	Lookup(index string, value ...any) (iter.Seq2[Key, T], error)
}

// A SnapshotStore is a store that can keep a state without a copy, as the one of
// package memory does. A [View] needs it.
type SnapshotStore[T any] interface {
	TakeSnapshot() Snapshot[T]
}

// A Snapshot is one state of a store, for as long as it is wanted, whatever is
// written meanwhile. Close lets it go.
type Snapshot[T any] interface {
	Reader[T]
	Close()
}

// A Resyncer is a store that can offer all its content again to whoever
// consumes it. The reflector calls Resync by its resync timer, beside Apply.
type Resyncer interface {
	Resync() error
}

// A Durable store keeps its content beyond the process. A replica with such a store
// serves what was kept at once, marked with its age. It asks the source only for its
// present version, and watches from the version that was kept. It lists only if that
// version is gone, or the source is another one, and then writes the differences.
type Durable interface {
	// Restore brings the content back and describes it. It is called once, before
	// anything is written. If nothing was kept, Kept.Positions and the content are
	// empty. They are empty after an error too, except for [ObjectErrors], which name
	// the objects that were not brought back in full, as those of Apply do.
	Restore(ctx context.Context) (Kept, error)
}

// A DiskReporter is a [Durable] store, or a [Sink], that says how its disk is doing. Disk
// may be called at any time.
type DiskReporter interface {
	Disk() SinkHealth
}

// A Releaser is a [Durable] store that is told when its replica no longer reads and
// writes it, so that another replica can use what it holds.
type Releaser interface {
	Release()
}

// A Filler is a [Durable] store that can take its first state in pieces, so that a
// collection need not fit into memory to be kept on disk.
//
//   - Fill takes some changes; first says that they are the first of a state, and
//     that the store forgets what was filled before.
//   - Readers see nothing of it before Filled, which makes it the content, at a
//     position, in one step.
//   - Both are called only while the store has nothing to compare with. Errors are
//     those of Apply.
type Filler[T any] interface {
	Fill(changes []Change[T], first bool) error
	Filled(at Position) error
}

// A Sink is a durable subscriber of a replica: a file, a database, a stream. It commits
// what the copy takes, batch by batch, each together with the position that it leads to.
// See [Options.Sinks].
//
//   - Open is called once, before anything else, or again after it failed. Kept says what
//     the sink holds. If that is where the copy is, only changes from there on follow, and
//     no object is sent that the sink has. If the sink is ahead of the copy, it is not
//     sent what it has. Else it is compared with the copy, see [SinkLister], and the
//     differences follow, deletes included, with a [Gap].
//   - Commit takes effect as a whole, positions and gaps included, or not at all. If it
//     fails it is tried again: with the same batch if the policy asks for every state, so
//     that a sink which did commit can tell by the positions; else with what came since
//     added to it. An error that wraps [ObjectErrors] concerns only these objects: the
//     rest is committed.
//   - Versions alone do not tell whether a sink has a state: a Change with Rewound may
//     bring other content under the same version.
//   - Open, Commit, Load and Held are never called at the same time, and may take their
//     time: the copy does not wait for them, except for Load.
//   - flush commits what waits, and returns how that went. The sink may call it at any
//     time until Close, but not from within its other methods.
//   - Close is called once, after the last Commit. That has a second, if the sink heeds
//     its context.
type Sink[T any] interface {
	Policy() SinkPolicy[T]
	Open(ctx context.Context, flush func() error) (Kept, error)
	Commit(ctx context.Context, b Batch[T]) error
	Close()
}

// A Restorer is a sink from which its objects can be loaded again. A replica with such a
// sink restarts as one with a [Durable] store does.
type Restorer[T any] interface {
	Sink[T]
	// Load returns an Add for each object that the sink holds at the positions that Open
	// returned. If the content turns out to be lost, it fails with [ErrSinkEmpty].
	Load(ctx context.Context) ([]Change[T], error)
}

// A SinkLister is a sink that can say what it holds, so that only differences are sent
// when it is compared with the copy. Any other sink is sent everything.
type SinkLister interface {
	// Held walks what the sink holds: keys, and versions and uids where it has them.
	Held(ctx context.Context) iter.Seq2[Meta, error]
}

// ChangeType says what a [Change] does to its key.
type ChangeType uint8

const (
	// Add is for a key that was absent.
	Add ChangeType = iota + 1
	// Update is for a key that was present.
	Update
	// Delete is for a key that was present.
	Delete
	// Sync offers a present object again, unchanged: on a resync, or because a
	// relist confirmed it. Stores never see it; subscribers that ask do.
	Sync
)

// Change is one step in the life of a key.
type Change[T any] struct {
	Type ChangeType
	// Initial says that an Add is part of the first state a subscriber sees.
	Initial bool
	// Missed says that a Delete was found by a relist, not told by the source:
	// Object is the last state known, perhaps not the last there was.
	Missed bool
	// Rewound says that an Update came by reading a source anew that had gone
	// back in time, by a recheck, or by the repair of a damaged object: its version
	// may be the one before, and the content not.
	Rewound bool
	Key     Key
	// Old is what was there before, for Update and Sync, and for a Delete what
	// was last seen.
	Old T
	// Object is the new state; for Delete the final one.
	Object T
	// Version of Object.
	Version Version
}

// BadObject tells of an object that could not be taken.
type BadObject struct {
	// Key is empty when not even that could be read, Version likewise.
	Key     Key
	Version Version
	Err     error
	// Since is when the object was first found bad.
	Since time.Time
}
