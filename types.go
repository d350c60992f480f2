package tarn

import (
	"context"
	"iter"
	"strings"
	"time"
)

// A Key names one object within its collection: "namespace/name" or "name" in
// Kubernetes. An object that is deleted and created again has the same key and
// another [Meta.UID].
type Key string

// HasPrefix reports whether the key begins with prefix.
func (k Key) HasPrefix(prefix Key) bool { return strings.HasPrefix(string(k), string(prefix)) }

// Meta identifies an object and its state.
type Meta struct {
	Key Key
	// Version of this state of the object; empty where the source has none.
	Version Version
	// UID distinguishes an object from one created later under the same key;
	// empty where the source has none.
	UID string
}

// A Source is a remote collection that can be read whole at a version and
// followed from a version.
//
//   - The reflector calls List and Watch from one goroutine at a time.
//   - A version that List returned is valid for Watch until the source compacts
//     it away; then Watch, or its stream, fails with [ReasonExpired].
//   - The reflector classifies failures by [ReasonOf]: wrap them with [Because].
//   - List, Watch and Next return promptly when ctx ends.
type Source[T any] interface {
	List(ctx context.Context, q ListQuery) (Page[T], error)
	Watch(ctx context.Context, q WatchQuery) (Stream[T], error)
	// Describe reads an object's identity. An error means that the object is
	// bad: nil, of another type, or without a name. Describe must also accept
	// the results of Options.Transform. Several goroutines may call it at a time.
	Describe(object T) (Meta, error)
}

// A ListStreamer is a source that hands over the items of a list while they arrive, so
// that a list without pages is never in memory as a whole.
//
//   - StreamList is List, except that it gives items to take: some at a time, in their
//     order, and only until it returns. Page.Items has those that it did not give.
//   - After an error the items that it gave are part of no state.
//
// A source that wraps another one hands StreamList on by the function of that name.
type ListStreamer[T any] interface {
	Source[T]
	StreamList(ctx context.Context, q ListQuery, take func(items []T)) (Page[T], error)
}

// StreamList calls source.StreamList, or List if the source is no [ListStreamer].
func StreamList[T any](ctx context.Context, source Source[T], q ListQuery, take func(items []T)) (Page[T], error) {
	if s, ok := source.(ListStreamer[T]); ok {
		return s.StreamList(ctx, q, take)
	}
	return source.List(ctx, q)
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
	// it with a copy. A source that cannot do this may ignore it: Page.Version is
	// the version that it returned.
	Exact bool
	// Afresh asks the source to reuse nothing from earlier answers, such as parts
	// that objects share: a program may have changed them.
	Afresh bool
	// Held holds the objects that the source gave, if they stay in memory without
	// a transform; else it is nil. A source can reuse parts of them for the next
	// states of the same objects.
	Held Holder
	// Key asks for one object instead of all. A source that cannot read just one may
	// return more.
	Key Key
}

// Page is a part of a collection. All pages of one list show the same state.
type Page[T any] struct {
	Items []T
	// Bad holds the items that could not be decoded into a T.
	Bad []BadObject
	// Version is that of the state.
	Version Version
	// Continue is the token for the next page, empty after the last.
	Continue string
}

// WatchQuery asks for the changes of a collection.
type WatchQuery struct {
	// From is the version after which changes are wanted. With Initial it is
	// the oldest acceptable state, as in [ListQuery.AtLeast].
	From Version
	// Initial asks the source to begin the stream with the whole collection, one
	// EventAdded per object, and to mark its end by an EventBookmark with InitialEnd.
	Initial bool
	// Afresh is as in [ListQuery].
	Afresh bool
	// Held is as in [ListQuery].
	Held Holder
	// Timeout is the time after which the source should end the stream.
	Timeout time.Duration
}

// A Stream delivers changes in the source's order.
//
//   - Next waits for an event, stores all available events in buf, up to its
//     length, and returns their number. It returns an error only with zero events.
//   - Next fails with io.EOF when the source ended the stream normally.
//   - When ctx ends, Next returns its error and drops no event: a call with
//     another context continues.
//   - Close releases the stream; it may be called more than once.
type Stream[T any] interface {
	Next(ctx context.Context, buf []Event[T]) (int, error)
	Close()
}

// EventType says what an [Event] is.
type EventType uint8

const (
	// EventAdded, EventModified and EventDeleted carry the object; EventDeleted
	// carries its last state.
	EventAdded EventType = iota + 1
	EventModified
	EventDeleted
	// EventBookmark says only that the source has come to a version.
	EventBookmark
	// EventUndecodable replaces an event whose type could not be read. The stream
	// continues after it. Its content is unknown, so the reflector reads the whole
	// state again.
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
	// Bad, if it has an Err, says what is wrong with the event. The store does
	// not get its object.
	Bad BadObject
}

// A Maintainer is a source with background work: one whose objects share memory verifies
// that no program writes to it. A source that wraps another one has a method Unwrap that
// returns it, so that the engine finds the Maintainer behind the wrapper.
type Maintainer[T any] interface {
	// Maintain runs in its own goroutine from the start of the reflector until ctx
	// ends.
	Maintain(ctx context.Context, held Copy[T])
}

// A Copy gives a [Maintainer] access to the objects that the store holds.
type Copy[T any] interface {
	// All walks the objects that are held in memory. It yields nothing for a store
	// that decodes its objects on every read.
	All() iter.Seq2[Key, T]
	// Repair reports objects that differ from what the source sent. The reflector
	// reads them again.
	Repair(damaged []Damage)
}

// A Sharded source reads a part of its collection, and the part may change while it is
// read. A source that wraps another one is searched for it as for a [Maintainer].
type Sharded interface {
	// Shard returns nil if the source reads the whole collection.
	Shard() ShardReader
}

// A ShardReader tells a reflector which part of a collection its source reads.
//
//   - Open is called when the reflector starts, and Close when it has ended. Between them
//     changed may be called, from any goroutine, when another part is to be read. The
//     reflector then reads the whole of that part. If it is within the previous part, the
//     reflector instead removes the objects that do not belong to it, and continues the
//     watch.
//   - Begin is called before that read. From then on lists and watches read the part that
//     is wanted at that moment. has reports whether an object belongs to it, nil if the part
//     never changes, and within says that all its objects belong to the part that the
//     store has.
//   - Taken is called when the store has the whole of that part.
//
// The reflector marks an object that comes or goes because the part has changed as Moved.
type ShardReader interface {
	Open(changed func())
	Begin() (has func(Meta) bool, within bool)
	Taken()
	// Health may be called at any time.
	Health() ShardHealth
	Close()
}

// Item is an object with its identity.
type Item[T any] struct {
	Meta
	Object T
}

// A Store holds the copy that a reflector writes.
//
//   - Replace sets the content to exactly these items, with this position as the only
//     one. Apply makes some changes and moves one section to a position.
//     Each takes effect as a whole, position included, or not at all.
//   - Apply without changes is a bookmark: only the position moves.
//   - One goroutine writes; the store does not keep the slices.
//   - An error that wraps [ObjectErrors] concerns only the objects that it names,
//     which are written as far as possible; everything else is written. Any other
//     error means that nothing is written.
type Store[T any] interface {
	Replace(items []Item[T], at Position) error
	Apply(changes []Change[T], at Position) error
}

// A Reader reads a store's content. Any number of goroutines may read while one
// writes. Each call sees one committed state.
type Reader[T any] interface {
	Get(key Key) (object T, ok bool)
	// All walks one state. Concurrent writes do not affect it.
	All() iter.Seq2[Key, T]
	Len() int
	// Version is that of the content: the oldest, if there are several sections.
	Version() Version
}

// ReadStore is a store that can be read. A [Replica] needs one. A relist into a
// ReadStore writes only the differences.
type ReadStore[T any] interface {
	Store[T]
	Reader[T]
}

// The interfaces below are optional. The engine finds them by [As], and in no other way.

// A StoreWrapper is a store that wraps another one. It has all abilities of the store
// that it wraps.
type StoreWrapper[T any] interface {
	Unwrap() ReadStore[T]
}

// A PrefixReader is a store that is ordered by key, so that work on one section of a
// replica does not walk the others.
type PrefixReader[T any] interface {
	// Prefix walks one state of the objects whose keys have a prefix.
	Prefix(prefix Key) iter.Seq2[Key, T]
}

// A Holder is a store that keeps its objects in memory. Any number of goroutines may call
// it at a time.
type Holder interface {
	// Held returns the object that was last written under a key: the same pointer,
	// not a new decoding for each call.
	Held(key Key) (object any, ok bool)
	// Len is the number of objects.
	Len() int
}

// An IndexStore is a store that finds objects by more than their keys, as the one
// of package memory does. [IndexBy] needs it.
type IndexStore[T any] interface {
	// AddIndexes adds indexes by name. Each function returns the values under
	// which an object is indexed. Other goroutines may read and write meanwhile.
	// An [ObjectErrors] names objects that are not indexed; any other error means
	// that no index was added.
	AddIndexes(functions map[string]func(T) ([]string, error)) error
	DropIndex(name string) error
	// Lookup walks the objects of one state that have a value. It fails if there
	// is no such index.
	Lookup(index string, value ...any) (iter.Seq2[Key, T], error)
}

// A SnapshotStore is a store that takes snapshots without copying its content, as the
// one of package memory does. A [View] needs it.
type SnapshotStore[T any] interface {
	TakeSnapshot() Snapshot[T]
}

// A Snapshot is one state of a store. Later writes do not affect it. Close releases it.
type Snapshot[T any] interface {
	Reader[T]
	Close()
}

// A Resyncer is a store that can deliver all its content to its consumers again. The
// reflector's resync timer calls Resync, possibly at the same time as Apply.
type Resyncer interface {
	Resync() error
}

// A Durable store keeps its content when the process ends. A replica with such a store
// serves the kept content at once, marked with its age. It asks the source only for its
// current version, and watches from the kept version. It lists only if the source has
// compacted that version, or is another source, and then writes the differences.
type Durable interface {
	// Restore loads the content and describes it. It is called once, before any write.
	// If the store has none, Kept.Positions and the content are empty. They are empty
	// after an error too, except for [ObjectErrors], which name the objects that were
	// not restored in full, as those of Apply do.
	Restore(ctx context.Context) (Kept, error)
}

// A DiskReporter is a [Durable] store, or a [Sink], that reports the state of its disk.
// Disk may be called at any time.
type DiskReporter interface {
	Disk() SinkHealth
}

// A Releaser is a [Durable] store with content that another replica can use later. The
// engine calls Release when the replica no longer reads and writes it.
type Releaser interface {
	Release()
}

// A Filler is a [Durable] store that takes its first state in pieces, so that a
// collection can be larger than memory.
//
//   - Fill takes some changes. If first is true, they begin a state, and the store
//     drops what earlier calls filled.
//   - Readers see the changes only after Filled, which makes them the content at a
//     position in one step.
//   - Both are called only while the store is empty. Errors are those of Apply.
type Filler[T any] interface {
	Fill(changes []Change[T], first bool) error
	Filled(at Position) error
}

// A Sink is a durable subscriber of a replica: a file, a database, a stream. It commits
// the changes of the copy in batches, each together with the resulting position.
// See [Options.Sinks].
//
//   - Open is called first, and again if it failed. Kept describes what the sink holds.
//     If its positions equal those of the copy, it gets only the changes after them. If
//     it is ahead of the copy, the engine does not send what it has already. Otherwise
//     the engine compares it with the copy, see [SinkLister], and sends the differences,
//     deletes included, with a [Gap].
//   - Commit takes effect as a whole, positions and gaps included, or not at all. After a
//     failure the engine tries again: with the same batch, marked Again, if the policy
//     asks for every state; otherwise with later changes merged in. An error that wraps
//     [ObjectErrors] concerns only these objects: the rest is committed.
//   - Versions alone do not prove that a sink has a state: a Change with Rewound may
//     have other content under the same version.
//   - Open, Commit, Load and Held are never called at the same time. They may be slow:
//     the copy waits for none of them but Load.
//   - flush commits the pending changes and returns the result. The sink may call it at
//     any time until Close, but not from its other methods.
//   - Close is called once, after the last Commit. When the replica stops, the contexts of
//     the last commits end after one second.
type Sink[T any] interface {
	Policy() SinkPolicy[T]
	Open(ctx context.Context, flush func() error) (Kept, error)
	Commit(ctx context.Context, b Batch[T]) error
	Close()
}

// A Restorer is a sink that can load its objects. A replica with such a sink restarts as
// one with a [Durable] store does.
type Restorer[T any] interface {
	Sink[T]
	// Load returns an Add for each object that the sink holds at the positions that Open
	// returned; its Version need not be set. It fails with [ErrSinkEmpty] if the content is missing after all.
	Load(ctx context.Context) ([]Change[T], error)
}

// A SinkLister is a sink that can list what it holds, so that a comparison with the copy
// sends only the differences. Any other sink gets everything.
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
	// Sync delivers an unchanged object again: on a resync, or because a relist
	// confirmed it. Stores never see it; subscribers that ask for it do.
	Sync
)

// Change is one step in the life of a key.
type Change[T any] struct {
	Type ChangeType
	// Initial says that an Add is part of the first state a subscriber sees.
	Initial bool
	// Missed says that a relist found the Delete, or that its final state could not be
	// taken. Object is then the last known state, perhaps not the final one; for a store
	// that cannot be read it is the zero value.
	Missed bool
	// Removed says that the object's section was removed from the replica. The source may
	// still have it. Missed is set too.
	Removed bool
	// Rewound says that an Update was found after the source went back in time, by
	// a recheck, or by the repair of a damaged object. Its content may differ from
	// Old under the same version. To a sink it also says that an Add or Update is older
	// than the position that the sink had reached: an object cannot be taken, and this is
	// the last good state that the copy knows.
	Rewound bool
	// Moved says that an Add or Delete is due to a change of the copy's shard: the object
	// itself is neither new nor deleted. Stores and sinks see such changes, and
	// subscribers that ask for them; see [SubscribeOptions].
	Moved bool
	Key   Key
	// Old is the state before, for Update, Sync and Delete.
	Old T
	// Object is the new state; for Delete the final one.
	Object T
	// Version of Object.
	Version Version
	// Heard is when the copy took the change, by the clock of this process. It is set for
	// sinks that ask for every state, and zero for everyone else.
	Heard time.Time
}

// BadObject describes an object that the store could not take.
type BadObject struct {
	// Key and Version are empty if they could not be read.
	Key     Key
	Version Version
	Err     error
	// Since is when the object was first found bad.
	Since time.Time
}
